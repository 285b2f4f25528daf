"""Who a process is and whom it believes: certificates, their reload, and the refusal of plain text.

certificate  what a folder with tls.crt, tls.key and ca.crt holds, checked and kept current
identities   the names that a peer's certificate proves, and which methods they may call
security     what a process passes to all that listens or connects; `ssl.SSLContext` for HTTP
"""
