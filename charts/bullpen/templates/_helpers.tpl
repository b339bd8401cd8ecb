{{/* The name that everything of this release starts with: the release's own where that says bullpen. */}}
{{- define "bullpen.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Cluster-wide objects carry the namespace too: two releases must not share one. */}}
{{- define "bullpen.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "bullpen.fullname" .) -}}
{{- end -}}

{{/* What a Deployment selects by can never change. */}}
{{- define "bullpen.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "bullpen.labels" -}}
{{ include "bullpen.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: controller
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "bullpen.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "bullpen.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "bullpen.lease" -}}
{{- printf "%s-controller" (include "bullpen.fullname" .) -}}
{{- end -}}

{{/* Whom the admission policies don't concern: see docs/security.md. */}}
{{- define "bullpen.notExempt" -}}
{{- $account := printf "system:serviceaccount:%s:%s" .Release.Namespace (include "bullpen.serviceAccount" .) -}}
{{- $collectors := list "system:serviceaccount:kube-system:generic-garbage-collector" "system:kube-controller-manager" -}}
{{- $users := concat (list $account) $collectors .Values.admissionPolicy.exemptUsers -}}
!(request.userInfo.username in {{ toJson $users }})
{{- with .Values.admissionPolicy.exemptGroups }} && !(has(request.userInfo.groups) && request.userInfo.groups.exists(group, group in {{ toJson . }})){{ end }}
{{- end -}}

{{/* Whom the policies concern that bound the controller itself. */}}
{{- define "bullpen.isController" -}}
{{- $account := printf "system:serviceaccount:%s:%s" .Release.Namespace (include "bullpen.serviceAccount" .) -}}
request.userInfo.username == {{ toJson $account }}
{{- end -}}
