{{/* Parts of the ValidatingAdmissionPolicies in security/admission.yaml. */}}

{{/* A policy with its binding, up to what it checks. A list: the root, its name, the service accounts that it holds, and
the resources, as a rule in YAML. */}}
{{- define "moorage.admissionPolicy" -}}
{{- $namespace := (index . 0).Release.Namespace }}
{{- $users := list }}
{{- range index . 2 }}{{ $users = append $users (printf "'system:serviceaccount:%s:%s'" $namespace .) }}{{ end -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $namespace }}-{{ index . 1 }}
spec:
  policyName: {{ $namespace }}-{{ index . 1 }}
  validationActions: [Deny, Audit]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $namespace }}-{{ index . 1 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {{ index . 3 }}
  matchConditions:
  - name: account
    expression: request.userInfo.username in [{{ join ", " $users }}]
{{- end }}

{{/* CEL: no field of the metadata has changed that a list names. */}}
{{- define "moorage.unchanged" -}}
{{ . }}.all(k, (k in dyn(object.metadata)) == (k in dyn(oldObject.metadata)) && (!(k in dyn(object.metadata)) || dyn(object.metadata)[k] == dyn(oldObject.metadata)[k]))
{{- end }}
