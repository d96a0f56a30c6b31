/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types that a v1 Pod is made of, as tests/release reads them out of a release: `*bool: a b@134~135` is two fields of that Go
 * type, the second one in 1.34 and 1.35 alone. intstr is IntOrString; any is a type that takes whatever stands there.
 */
#include "../pod.h"

/* clang-format off */
const struct lkg_pod_type lkg_pod_types[] = {
        { "AWSElasticBlockStoreVolumeSource", "bool: readOnly; int32: partition; string: fsType volumeID" },
        { "Affinity", "*NodeAffinity: nodeAffinity; *PodAffinity: podAffinity; *PodAntiAffinity: podAntiAffinity" },
        { "AppArmorProfile", "*string: localhostProfile; string: type" },
        { "AzureDiskVolumeSource", "*bool: readOnly; *string: cachingMode fsType kind; string: diskName diskURI" },
        { "AzureFileVolumeSource", "bool: readOnly; string: secretName shareName" },
        { "CSIVolumeSource", "*LocalObjectReference: nodePublishSecretRef; *bool: readOnly; *string: fsType; map[string]string: "
           "volumeAttributes; string: driver" },
        { "Capabilities", "[]string: add drop" },
        { "CephFSVolumeSource", "*LocalObjectReference: secretRef; []string: monitors; bool: readOnly; string: path secretFile "
           "user" },
        { "CinderVolumeSource", "*LocalObjectReference: secretRef; bool: readOnly; string: fsType volumeID" },
        { "ClusterTrustBundleProjection", "*LabelSelector: labelSelector; *bool: optional; *int64: user@137; *string: name "
           "signerName; string: path" },
        { "ConfigMapEnvSource", "*bool: optional; string: name" },
        { "ConfigMapKeySelector", "*bool: optional; string: key name" },
        { "ConfigMapProjection", "*bool: optional; []KeyToPath: items; string: name" },
        { "ConfigMapVolumeSource", "*bool: optional; *int32: defaultMode; *int64: defaultUser@137; []KeyToPath: items; string: "
           "name" },
        { "Container", "*Lifecycle: lifecycle; *Probe: livenessProbe readinessProbe startupProbe; *SecurityContext: "
           "securityContext; *string: restartPolicy; ResourceRequirements: resources; []ContainerPort: ports; "
           "[]ContainerResizePolicy: resizePolicy; []ContainerRestartRule: restartPolicyRules@134; []EnvFromSource: envFrom; "
           "[]EnvVar: env; []VolumeDevice: volumeDevices; []VolumeMount: volumeMounts; []string: args command; bool: stdin "
           "stdinOnce tty; string: image imagePullPolicy name terminationMessagePath terminationMessagePolicy workingDir" },
        { "ContainerExtendedResourceRequest", "string: containerName requestName resourceName" },
        { "ContainerPort", "int32: containerPort hostPort; string: hostIP name protocol" },
        { "ContainerResizePolicy", "string: resourceName restartPolicy" },
        { "ContainerRestartRule", "*ContainerRestartRuleOnExitCodes: exitCodes; string: action" },
        { "ContainerRestartRuleOnExitCodes", "[]int32: values; string: operator" },
        { "ContainerState", "*ContainerStateRunning: running; *ContainerStateTerminated: terminated; *ContainerStateWaiting: "
           "waiting" },
        { "ContainerStateRunning", "time: startedAt" },
        { "ContainerStateTerminated", "int32: exitCode signal; string: containerID message reason; time: finishedAt startedAt" },
        { "ContainerStateWaiting", "string: message reason" },
        { "ContainerStatus", "*ContainerUser: user; *ResourceRequirements: resources; *bool: started; *string: stopSignal; "
           "ContainerState: lastState state; []ResourceStatus: allocatedResourcesStatus; []VolumeMountStatus: volumeMounts; "
           "bool: ready; int32: restartCount; map[string]quantity: allocatedResources; string: containerID image imageID name" },
        { "ContainerUser", "*LinuxContainerUser: linux" },
        { "DownwardAPIProjection", "[]DownwardAPIVolumeFile: items" },
        { "DownwardAPIVolumeFile", "*ObjectFieldSelector: fieldRef; *ResourceFieldSelector: resourceFieldRef; *int32: mode; "
           "*int64: user@137; string: path" },
        { "DownwardAPIVolumeSource", "*int32: defaultMode; *int64: defaultUser@137; []DownwardAPIVolumeFile: items" },
        { "EmptyDirVolumeSource", "*int32: mode@137; *quantity: sizeLimit; string: medium" },
        { "EnvFromSource", "*ConfigMapEnvSource: configMapRef; *SecretEnvSource: secretRef; string: prefix" },
        { "EnvVar", "*EnvVarSource: valueFrom; string: name value" },
        { "EnvVarSource", "*ConfigMapKeySelector: configMapKeyRef; *FileKeySelector: fileKeyRef@134; *ObjectFieldSelector: "
           "fieldRef; *ResourceFieldSelector: resourceFieldRef; *SecretKeySelector: secretKeyRef" },
        { "EphemeralContainer", "*Lifecycle: lifecycle; *Probe: livenessProbe readinessProbe startupProbe; *SecurityContext: "
           "securityContext; *string: restartPolicy; ResourceRequirements: resources; []ContainerPort: ports; "
           "[]ContainerResizePolicy: resizePolicy; []ContainerRestartRule: restartPolicyRules@134; []EnvFromSource: envFrom; "
           "[]EnvVar: env; []VolumeDevice: volumeDevices; []VolumeMount: volumeMounts; []string: args command; bool: stdin "
           "stdinOnce tty; string: image imagePullPolicy name targetContainerName terminationMessagePath "
           "terminationMessagePolicy workingDir" },
        { "EphemeralVolumeSource", "*PersistentVolumeClaimTemplate: volumeClaimTemplate" },
        { "EvictionResponder", "*int32: priority; string: name" },
        { "ExecAction", "[]string: command" },
        { "FCVolumeSource", "*int32: lun; []string: targetWWNs wwids; bool: readOnly; string: fsType" },
        { "FileKeySelector", "*bool: optional; string: key path volumeName" },
        { "FlexVolumeSource", "*LocalObjectReference: secretRef; bool: readOnly; map[string]string: options; string: driver "
           "fsType" },
        { "FlockerVolumeSource", "string: datasetName datasetUUID" },
        { "GCEPersistentDiskVolumeSource", "bool: readOnly; int32: partition; string: fsType pdName" },
        { "GRPCAction", "*string: mode@137 service; int32: port" },
        { "GitRepoVolumeSource", "string: directory repository revision" },
        { "GlusterfsVolumeSource", "bool: readOnly; string: endpoints path" },
        { "HTTPGetAction", "*string: protocol@137; []HTTPHeader: httpHeaders; intstr: port; string: host path scheme" },
        { "HTTPHeader", "string: name value" },
        { "HostAlias", "[]string: hostnames; string: ip" },
        { "HostIP", "string: ip" },
        { "HostPathVolumeSource", "*string: type; string: path" },
        { "ISCSIVolumeSource", "*LocalObjectReference: secretRef; *string: initiatorName; []string: portals; bool: "
           "chapAuthDiscovery chapAuthSession readOnly; int32: lun; string: fsType iqn iscsiInterface targetPortal" },
        { "ImageVolumeSource", "string: pullPolicy reference" },
        { "ImageVolumeStatus", "string: imageRef" },
        { "KeyToPath", "*int32: mode; *int64: user@137; string: key path" },
        { "LabelSelector", "[]LabelSelectorRequirement: matchExpressions; map[string]string: matchLabels" },
        { "LabelSelectorRequirement", "[]string: values; string: key operator" },
        { "Lifecycle", "*LifecycleHandler: postStart preStop; *string: stopSignal" },
        { "LifecycleHandler", "*ExecAction: exec; *HTTPGetAction: httpGet; *SleepAction: sleep; *TCPSocketAction: tcpSocket" },
        { "LinuxContainerUser", "[]int64: supplementalGroups; int64: gid uid" },
        { "LocalObjectReference", "string: name" },
        { "ManagedFieldsEntry", "*any: fieldsV1; *time: time; string: apiVersion fieldsType manager operation subresource" },
        { "NFSVolumeSource", "bool: readOnly; string: path server" },
        { "NodeAffinity", "*NodeSelector: requiredDuringSchedulingIgnoredDuringExecution; []PreferredSchedulingTerm: "
           "preferredDuringSchedulingIgnoredDuringExecution" },
        { "NodeAllocatableMappedResources", "*quantity: quantity; string: name" },
        { "NodeAllocatableOverheadResources", "*quantity: perContainer perPod; string: name" },
        { "NodeAllocatableResourceClaimStatus", "[]NodeAllocatableMappedResources: mapping@137; "
           "[]NodeAllocatableOverheadResources: overhead@137; []string: containers; map[string]quantity: resources~136; "
           "string: resourceClaimName" },
        { "NodeSelector", "[]NodeSelectorTerm: nodeSelectorTerms" },
        { "NodeSelectorRequirement", "[]string: values; string: key operator" },
        { "NodeSelectorTerm", "[]NodeSelectorRequirement: matchExpressions matchFields" },
        { "ObjectFieldSelector", "string: apiVersion fieldPath" },
        { "ObjectMeta", "*int64: deletionGracePeriodSeconds; *time: deletionTimestamp; []ManagedFieldsEntry: managedFields; "
           "[]OwnerReference: ownerReferences; []string: finalizers; int64: generation; map[string]string: annotations labels; "
           "string: generateName name namespace resourceVersion selfLink uid; time: creationTimestamp" },
        { "OwnerReference", "*bool: blockOwnerDeletion controller; string: apiVersion kind name uid" },
        { "PersistentVolumeClaimSpec", "*LabelSelector: selector; *TypedLocalObjectReference: dataSource; *TypedObjectReference: "
           "dataSourceRef; *string: storageClassName volumeAttributesClassName volumeMode; VolumeResourceRequirements: "
           "resources; []string: accessModes; string: volumeName" },
        { "PersistentVolumeClaimTemplate", "ObjectMeta: metadata; PersistentVolumeClaimSpec: spec" },
        { "PersistentVolumeClaimVolumeSource", "bool: readOnly; string: claimName" },
        { "PhotonPersistentDiskVolumeSource", "string: fsType pdID" },
        { "Pod", "ObjectMeta: metadata; PodSpec: spec; PodStatus: status; string: apiVersion kind" },
        { "PodAffinity", "[]PodAffinityTerm: requiredDuringSchedulingIgnoredDuringExecution; []WeightedPodAffinityTerm: "
           "preferredDuringSchedulingIgnoredDuringExecution" },
        { "PodAffinityTerm", "*LabelSelector: labelSelector namespaceSelector; []string: matchLabelKeys mismatchLabelKeys "
           "namespaces; string: topologyKey" },
        { "PodAntiAffinity", "[]PodAffinityTerm: requiredDuringSchedulingIgnoredDuringExecution; []WeightedPodAffinityTerm: "
           "preferredDuringSchedulingIgnoredDuringExecution" },
        { "PodCertificateProjection", "*int32: maxExpirationSeconds; *int64: user@137; map[string]string: userAnnotations@135; "
           "string: certificateChainPath credentialBundlePath keyPath keyType signerName" },
        { "PodCondition", "int64: observedGeneration; string: message reason status type; time: lastProbeTime lastTransitionTime" },
        { "PodDNSConfig", "[]PodDNSConfigOption: options; []string: nameservers searches" },
        { "PodDNSConfigOption", "*string: value; string: name" },
        { "PodExtendedResourceClaimStatus", "[]ContainerExtendedResourceRequest: requestMappings; string: resourceClaimName" },
        { "PodIP", "string: ip" },
        { "PodOS", "string: name" },
        { "PodReadinessGate", "string: conditionType" },
        { "PodResourceClaim", "*string: resourceClaimName resourceClaimTemplateName; string: name" },
        { "PodResourceClaimStatus", "*string: resourceClaimName; string: name" },
        { "PodSchedulingGate", "string: name" },
        { "PodSchedulingGroup", "*string: podGroupName" },
        { "PodSecurityContext", "*AppArmorProfile: appArmorProfile; *SELinuxOptions: seLinuxOptions; *SeccompProfile: "
           "seccompProfile; *WindowsSecurityContextOptions: windowsOptions; *bool: runAsNonRoot; *int64: fsGroup runAsGroup "
           "runAsUser; *string: fsGroupChangePolicy seLinuxChangePolicy supplementalGroupsPolicy; []Sysctl: sysctls; []int64: "
           "supplementalGroups" },
        { "PodSpec", "*Affinity: affinity; *PodDNSConfig: dnsConfig; *PodOS: os; *PodSchedulingGroup: schedulingGroup@136; "
           "*PodSecurityContext: securityContext; *ResourceRequirements: resources; *WorkloadReference: workloadRef@135~135; "
           "*bool: automountServiceAccountToken enableServiceLinks hostUsers setHostnameAsFQDN shareProcessNamespace; *int32: "
           "priority; *int64: activeDeadlineSeconds terminationGracePeriodSeconds; *string: hostnameOverride@134 "
           "preemptionPolicy runtimeClassName; []Container: containers initContainers; []EphemeralContainer: "
           "ephemeralContainers; []EvictionResponder: evictionResponders@137; []HostAlias: hostAliases; "
           "[]LocalObjectReference: imagePullSecrets; []PodReadinessGate: readinessGates; []PodResourceClaim: resourceClaims; "
           "[]PodSchedulingGate: schedulingGates; []Toleration: tolerations; []TopologySpreadConstraint: "
           "topologySpreadConstraints; []Volume: volumes; bool: hostIPC hostNetwork hostPID; map[string]quantity: overhead; "
           "map[string]string: nodeSelector; string: dnsPolicy hostname nodeName priorityClassName restartPolicy schedulerName "
           "serviceAccount serviceAccountName subdomain" },
        { "PodStatus", "*PodExtendedResourceClaimStatus: extendedResourceClaimStatus@134; *ResourceRequirements: resources@135; "
           "*time: startTime; []ContainerStatus: containerStatuses ephemeralContainerStatuses initContainerStatuses; []HostIP: "
           "hostIPs; []NodeAllocatableResourceClaimStatus: nodeAllocatableResourceClaimStatuses@136; []PodCondition: "
           "conditions; []PodIP: podIPs; []PodResourceClaimStatus: resourceClaimStatuses; []PodVolumeHealth: volumeHealth@137; "
           "int64: observedGeneration; map[string]quantity: allocatedResources@135; string: hostIP message nominatedNodeName "
           "phase podIP qosClass reason resize" },
        { "PodVolumeHealth", "[]VolumeHealthCondition: healthConditions; string: name; time: lastTransitionTime" },
        { "PortworxVolumeSource", "bool: readOnly; string: fsType volumeID" },
        { "PreferredSchedulingTerm", "NodeSelectorTerm: preference; int32: weight" },
        { "Probe", "*ExecAction: exec; *GRPCAction: grpc; *HTTPGetAction: httpGet; *TCPSocketAction: tcpSocket; *int64: "
           "terminationGracePeriodSeconds; int32: failureThreshold initialDelaySeconds periodSeconds successThreshold "
           "timeoutSeconds" },
        { "ProjectedVolumeSource", "*int32: defaultMode; *int64: defaultUser@137; []VolumeProjection: sources" },
        { "QuobyteVolumeSource", "bool: readOnly; string: group registry tenant user volume" },
        { "RBDVolumeSource", "*LocalObjectReference: secretRef; []string: monitors; bool: readOnly; string: fsType image keyring "
           "pool user" },
        { "ResourceClaim", "string: name request" },
        { "ResourceFieldSelector", "quantity: divisor; string: containerName resource" },
        { "ResourceHealth", "*string: message@136; string: health resourceID" },
        { "ResourceRequirements", "[]ResourceClaim: claims; map[string]quantity: limits requests" },
        { "ResourceStatus", "[]ResourceHealth: resources; string: name" },
        { "SELinuxOptions", "string: level role type user" },
        { "ScaleIOVolumeSource", "*LocalObjectReference: secretRef; bool: readOnly sslEnabled; string: fsType gateway "
           "protectionDomain storageMode storagePool system volumeName" },
        { "SeccompProfile", "*string: localhostProfile; string: type" },
        { "SecretEnvSource", "*bool: optional; string: name" },
        { "SecretKeySelector", "*bool: optional; string: key name" },
        { "SecretProjection", "*bool: optional; []KeyToPath: items; string: name" },
        { "SecretVolumeSource", "*bool: optional; *int32: defaultMode; *int64: defaultUser@137; []KeyToPath: items; string: "
           "secretName" },
        { "SecurityContext", "*AppArmorProfile: appArmorProfile; *Capabilities: capabilities; *SELinuxOptions: seLinuxOptions; "
           "*SeccompProfile: seccompProfile; *WindowsSecurityContextOptions: windowsOptions; *bool: allowPrivilegeEscalation "
           "privileged readOnlyRootFilesystem runAsNonRoot; *int64: runAsGroup runAsUser; *string: procMount" },
        { "ServiceAccountTokenProjection", "*int64: expirationSeconds user@137; string: audience path" },
        { "SleepAction", "int64: seconds" },
        { "StorageOSVolumeSource", "*LocalObjectReference: secretRef; bool: readOnly; string: fsType volumeName volumeNamespace" },
        { "Sysctl", "string: name value" },
        { "TCPSocketAction", "intstr: port; string: host" },
        { "Toleration", "*int64: tolerationSeconds; string: effect key operator value" },
        { "TopologySpreadConstraint", "*LabelSelector: labelSelector; *int32: minDomains; *string: nodeAffinityPolicy "
           "nodeTaintsPolicy; []string: matchLabelKeys; int32: maxSkew; string: topologyKey whenUnsatisfiable" },
        { "TypedLocalObjectReference", "*string: apiGroup; string: kind name" },
        { "TypedObjectReference", "*string: apiGroup namespace; string: kind name" },
        { "Volume", "*AWSElasticBlockStoreVolumeSource: awsElasticBlockStore; *AzureDiskVolumeSource: azureDisk; "
           "*AzureFileVolumeSource: azureFile; *CSIVolumeSource: csi; *CephFSVolumeSource: cephfs; *CinderVolumeSource: "
           "cinder; *ConfigMapVolumeSource: configMap; *DownwardAPIVolumeSource: downwardAPI; *EmptyDirVolumeSource: emptyDir; "
           "*EphemeralVolumeSource: ephemeral; *FCVolumeSource: fc; *FlexVolumeSource: flexVolume; *FlockerVolumeSource: "
           "flocker; *GCEPersistentDiskVolumeSource: gcePersistentDisk; *GitRepoVolumeSource: gitRepo; *GlusterfsVolumeSource: "
           "glusterfs; *HostPathVolumeSource: hostPath; *ISCSIVolumeSource: iscsi; *ImageVolumeSource: image; "
           "*NFSVolumeSource: nfs; *PersistentVolumeClaimVolumeSource: persistentVolumeClaim; "
           "*PhotonPersistentDiskVolumeSource: photonPersistentDisk; *PortworxVolumeSource: portworxVolume; "
           "*ProjectedVolumeSource: projected; *QuobyteVolumeSource: quobyte; *RBDVolumeSource: rbd; *ScaleIOVolumeSource: "
           "scaleIO; *SecretVolumeSource: secret; *StorageOSVolumeSource: storageos; *VsphereVirtualDiskVolumeSource: "
           "vsphereVolume; string: name" },
        { "VolumeDevice", "string: devicePath name" },
        { "VolumeHealthCondition", "string: message reason status" },
        { "VolumeMount", "*string: mountPropagation recursiveReadOnly; []string: bindMountOptions@137; bool: readOnly; string: "
           "mountPath name subPath subPathExpr" },
        { "VolumeMountStatus", "*VolumeStatus: volumeStatus@136; *string: recursiveReadOnly; bool: readOnly; string: mountPath "
           "name" },
        { "VolumeProjection", "*ClusterTrustBundleProjection: clusterTrustBundle; *ConfigMapProjection: configMap; "
           "*DownwardAPIProjection: downwardAPI; *PodCertificateProjection: podCertificate@134; *SecretProjection: secret; "
           "*ServiceAccountTokenProjection: serviceAccountToken" },
        { "VolumeResourceRequirements", "map[string]quantity: limits requests" },
        { "VolumeStatus", "*ImageVolumeStatus: image" },
        { "VsphereVirtualDiskVolumeSource", "string: fsType storagePolicyID storagePolicyName volumePath" },
        { "WeightedPodAffinityTerm", "PodAffinityTerm: podAffinityTerm; int32: weight" },
        { "WindowsSecurityContextOptions", "*bool: hostProcess; *string: gmsaCredentialSpec gmsaCredentialSpecName runAsUserName" },
        { "WorkloadReference", "string: name~135 podGroup~135 podGroupReplicaKey~135" },
};
const size_t lkg_n_pod_types = LKG_ARRAY_SIZE(lkg_pod_types);
