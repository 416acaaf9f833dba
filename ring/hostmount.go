package ring

// HostMount is one folder or file of the host as a container sees it. Source
// and Target are absolute and clean.
type HostMount struct {
	Source, Target string
	ReadOnly       bool
}

// HostMounts are all that one container mounts of the host.
type HostMounts struct {
	// Who names the container as people read it: "service db", or "container web-db-1".
	Who    string
	Mounts []HostMount
}
