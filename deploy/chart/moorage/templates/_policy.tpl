{{/* The policy, and what kube-scheduler's configuration needs for it. */}}

{{/* The policy with its header, and with a name for profiles that have none. */}}
{{- define "moorage.policy" -}}
# Which plugins run for which pods, beside those of kube-scheduler.
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
{{ $policy := deepCopy .Values.policy }}
{{- $names := list }}
{{- range $policy.profiles }}
{{- if not .schedulerName }}{{ $_ := set . "schedulerName" $.Values.schedulerName }}{{ end }}
{{- if has .schedulerName $names }}{{ fail (printf "policy.profiles: two of them have the schedulerName %s" .schedulerName) }}{{ end }}
{{- $names = append $names .schedulerName }}
{{- end }}
{{- toYaml (omit $policy "apiVersion" "kind") }}
{{- end }}

{{/* The names that pods write into spec.schedulerName, as a JSON list. */}}
{{- define "moorage.schedulerNames" -}}
{{- $names := list }}
{{- if eq .Values.layout "control-plane" }}{{ $names = list "default-scheduler" }}{{ end }}
{{- range (fromYaml (include "moorage.policy" .)).profiles }}{{ $names = append $names .schedulerName }}{{ end }}
{{- $names | uniq | toJson }}
{{- end }}

{{/* The verbs that the policy's plugins need, as a JSON object of verb -> plugins. files/plugins.yaml has the plugins of
Moorage and is generated; plugins that it does not have may need every verb. */}}
{{- define "moorage.verbs" -}}
{{- $known := .Files.Get "files/plugins.yaml" | fromYaml }}
{{- $verbs := dict }}
{{- range .Values.policy.profiles }}
{{- range $point, $set := .plugins }}
{{- range ($set | default dict).enabled }}
{{- $name := .name }}
{{- range get $known $name | default (list "filter" "prioritize" "preempt" "bind") }}
{{- $_ := set $verbs . (append (get $verbs . | default list) $name | uniq) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- $bind := toString .Values.extender.bindVerb }}
{{- if eq $bind "false" }}{{ $verbs = omit $verbs "bind" }}{{ end }}
{{- if and (eq $bind "true") (not $verbs.bind) }}{{ $_ := set $verbs "bind" (list "extender.bindVerb: true") }}{{ end }}
{{- $verbs | toJson }}
{{- end }}
