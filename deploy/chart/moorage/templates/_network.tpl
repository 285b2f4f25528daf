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
{{- if not .addresses -}}
{{- fail "networkPolicy.apiServer.addresses is missing: where the API server is, such as [10.0.0.1/32]; kubectl get endpointslices -n default -l kubernetes.io/service-name=kubernetes has it. Or set networkPolicy.enabled=false" }}
{{- end -}}
# The API server.
- to:
  {{- include "moorage.addresses" .addresses | trim | nindent 2 }}
  ports:
  {{- range .ports }}
  - {protocol: TCP, port: {{ . }}}
  {{- end }}
{{- end }}
{{- end }}
