{{/* Peers of network policies. */}}

{{- define "moorage.namespaces" -}}
{{- range . }}
- namespaceSelector:
    matchLabels: {kubernetes.io/metadata.name: {{ . }}}
{{- end }}
{{- end }}

{{- define "moorage.addresses" -}}
{{- range . }}
- ipBlock: {cidr: {{ . | quote }}}
{{- end }}
{{- end }}

{{- define "moorage.pods" -}}
{{- range . }}
- podSelector:
    matchLabels: {app.kubernetes.io/name: {{ . }}}
{{- end }}
{{- end }}

{{- define "moorage.toApiServer" -}}
{{- with .Values.networkPolicy.apiServer -}}
# The API server.
- to:
  {{- include "moorage.addresses" .addresses | trim | nindent 2 }}
  ports:
  {{- range .ports }}
  - {protocol: TCP, port: {{ . }}}
  {{- end }}
{{- end }}
{{- end }}
