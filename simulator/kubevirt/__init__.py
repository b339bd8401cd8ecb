"""The KubeVirt stand-in: walks VirtualMachines through the writes that KubeVirt was seen to make."""
