{{/* The field `extenders` of kube-scheduler's configuration. tests/e2e/packaging/test_chart.py holds it against `moorage config extender`. */}}

{{- define "moorage.extenders" -}}
{{- $own := and (eq .Values.layout "control-plane") (eq .Values.controlPlane.ownPods "ignorable") -}}
{{- if .Values.extender.entries -}}
{{- range .Values.extender.entries }}{{ if and $own .bindVerb }}{{ fail (include "moorage.deadlock" "extender.entries") }}{{ end }}{{ end -}}
extenders:
{{ toYaml .Values.extender.entries }}
{{- else -}}
{{- $verbs := include "moorage.verbs" . | fromJson -}}
{{- $cycle := omit $verbs "bind" -}}
{{- if and $own $verbs.bind }}{{ fail (include "moorage.deadlock" (join ", " $verbs.bind)) }}{{ end -}}
{{- if not $verbs -}}
# No profile enables a plugin, so no extender is needed.
extenders: []
{{- else -}}
# What `moorage config extender` prints for the policy, with the reasons and the cost of each verb.
extenders:
{{- if $cycle }}
{{ include "moorage.extenderAddress" . }}
{{- range $verb := list "filter" "prioritize" "preempt" }}
{{- with get $cycle $verb }}
  {{ $verb }}Verb: {{ $verb }}  # for {{ join ", " . }}
{{- end }}
{{- end }}
{{- if $cycle.prioritize }}
  # kube-scheduler adds Moorage's score x weight x 10 to the sum of its own, which is 1,400 at most: see docs/how-to/plugins/score-weight.md.
  weight: {{ include "moorage.extenderWeight" . }}
{{- end }}
{{- include "moorage.extenderCalls" . }}
  {{- if or .Values.extender.ignorable $own }}
  # If Moorage is down, pods are placed without its rules. false would make them wait{{ if $own }}, Moorage's own too{{ end }}.
  ignorable: true
  {{- else }}
  # If Moorage is down, pods wait. true would mean that they are placed without its rules.
  ignorable: false
  {{- end }}
{{- end }}
{{- with $verbs.bind }}
# Binds have an entry of their own: if Moorage is down, pods are not bound, and kube-scheduler must not bind instead.
{{ include "moorage.extenderAddress" $ }}
  bindVerb: bind  # for {{ join ", " . }}
{{- include "moorage.extenderCalls" $ }}
  ignorable: false
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "moorage.extenderAddress" -}}
{{- if and (eq .Values.layout "control-plane") (not (or .Values.gateway.clusterIP .Values.extender.url)) }}
{{- fail (include "moorage.noAddress" .) }}
{{- end }}
{{- $address := .Values.gateway.clusterIP | default (printf "gateway.%s.svc" .Release.Namespace) -}}
- urlPrefix: {{ .Values.extender.url | default (printf "https://%s:8888" $address) }}
  enableHTTPS: true
  # Who kube-scheduler is, and whom it believes; see docs/explanation/security.md.
  tlsConfig:
    serverName: moorage-gateway
    caFile: /etc/moorage/tls/ca.crt
    certFile: /etc/moorage/tls/tls.crt
    keyFile: /etc/moorage/tls/tls.key
{{- end }}

{{- define "moorage.extenderCalls" }}
  # For one call with reading the answer. Moorage answers in milliseconds, and gives up before this.
  httpTimeout: {{ .Values.extender.httpTimeout }}
  # Names instead of whole nodes: smaller, faster, and since Kubernetes 1.33 the other mode makes in-tree plugins see
  # every node as empty (kubernetes/kubernetes#141781).
  nodeCacheCapable: true
{{- end }}

{{/* The smallest weight with which a lead of a tenth of the scale is more than all in-tree scores together. */}}
{{- define "moorage.extenderWeight" -}}
{{- $scale := .Values.policy.scoreScale | default 100 | int -}}
{{- .Values.extender.weight | default (add1 (div 1400 $scale)) -}}
{{- end }}

{{- define "moorage.deadlock" }}
controlPlane.ownPods: kube-scheduler would ask Moorage to bind every pod, for {{ . }}. Once the gateway is down, its own
pods would not be bound either. Set controlPlane.ownPods to plain-scheduler, or take another layout.
{{- end }}

{{- define "moorage.noAddress" }}
gateway.clusterIP: layout control-plane needs an unused address of the range of the cluster's Services, such as 10.96.88.88
with kubeadm's 10.96.0.0/12: a static pod cannot resolve names of Services.
{{- end }}
