package manifest

// Limits bound what one commit may make gitring read (docs/design/trust.md#limits). A
// zero field is its default. They hold before anything is expanded.
type Limits struct {
	Files        int   // manifest files of one commit; default 5,000
	FileSize     int64 // bytes of one manifest file; default 1 MiB
	TotalSize    int64 // bytes of all manifest files; default 64 MiB
	Expanded     int64 // bytes of one file or app after expansion; default TotalSize where that is set, else 8 MiB
	Depth        int   // nesting of YAML, aliases followed; default 64
	Nodes        int   // nodes of an app's YAML, aliases followed; default 100,000
	Aliases      int   // aliases of one YAML file; default 1,000
	Entries      int   // of one YAML list or mapping; default 1,000
	Text         int   // bytes of one string; default 64 KiB
	Chain        int   // files that include one another, or services that extend one another, in a row; default 8
	Included     int   // files that one app includes and extends; default 50
	Services     int   // services of one app; default 100
	Ports        int   // ports of one app, ranges expanded; default 1,000
	Replicas     int   // of one service; default 1,000
	ContentFiles int   // files of one mounted folder; default 10,000
	ContentFile  int64 // bytes of one mounted file; default 64 MiB
	ContentSize  int64 // bytes of one mounted folder; default 256 MiB
}

// DefaultLimits are the defaults of all of them.
func DefaultLimits() Limits {
	return Limits{
		Files: 5_000, FileSize: 1 << 20, TotalSize: 64 << 20, Expanded: 8 << 20,
		Depth: 64, Nodes: 100_000, Aliases: 1_000, Entries: 1_000, Text: 64 << 10,
		Chain: 8, Included: 50, Services: 100, Ports: 1_000, Replicas: 1_000,
		ContentFiles: 10_000, ContentFile: 64 << 20, ContentSize: 256 << 20,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	expanded := or(l.Expanded, or(l.TotalSize, d.Expanded))
	return Limits{
		Files: or(l.Files, d.Files), FileSize: or(l.FileSize, d.FileSize), TotalSize: or(l.TotalSize, d.TotalSize), Expanded: expanded,
		Depth: or(l.Depth, d.Depth), Nodes: or(l.Nodes, d.Nodes), Aliases: or(l.Aliases, d.Aliases), Entries: or(l.Entries, d.Entries), Text: or(l.Text, d.Text),
		Chain: or(l.Chain, d.Chain), Included: or(l.Included, d.Included),
		Services: or(l.Services, d.Services), Ports: or(l.Ports, d.Ports), Replicas: or(l.Replicas, d.Replicas),
		ContentFiles: or(l.ContentFiles, d.ContentFiles), ContentFile: or(l.ContentFile, d.ContentFile), ContentSize: or(l.ContentSize, d.ContentSize),
	}
}

func or[T int | int64](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}
