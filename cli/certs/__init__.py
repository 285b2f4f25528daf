"""`moorage certs`: a certificate authority for development, and a folder for each identity."""
