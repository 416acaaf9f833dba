package config

import (
	"cmp"
	"slices"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
)

// limitKey is one key below limits. Its unit is that of the field it sets: a
// size, a number, or a time.
type limitKey struct {
	name    string // group and key
	field   func(*limits) any
	floor   int64 // below it nothing ordinary works
	ceiling int64 // 0 is the unit's
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// limitKeys are all limits that the configuration may set (docs/reference/configuration.md#limits).
var limitKeys = []limitKey{
	{"git.received", func(l *limits) any { return &l.git.Received }, mib, 0},
	{"git.objects", func(l *limits) any { return &l.git.Objects }, 100, 0},
	{"git.object_size", func(l *limits) any { return &l.git.Object }, mib, 0},
	{"git.refs_size", func(l *limits) any { return &l.git.Adverts }, 64 * kib, 0},
	{"git.idle", func(l *limits) any { return &l.git.Idle }, int64(time.Second), 0},
	{"git.update", func(l *limits) any { return &l.git.Update }, int64(time.Second), 0},
	{"git.clone", func(l *limits) any { return &l.git.Clone }, int64(time.Second), 0},
	{"git.memory", func(l *limits) any { return &l.git.Memory }, 256 * mib, 0},
	{"git.memory_target", func(l *limits) any { return &l.git.Target }, 64 * mib, 0},
	{"git.file_size", func(l *limits) any { return &l.git.File }, mib, 0},
	{"git.open_files", func(l *limits) any { return &l.git.Descriptors }, 64, 1 << 20},
	{"git.poke_every", func(l *limits) any { return &l.git.PokeEvery }, int64(100 * time.Millisecond), 0},
	{"git.backoff", func(l *limits) any { return &l.git.MaxBackoff }, int64(time.Second), 0},

	{"content.files", func(l *limits) any { return &l.content.Files }, 1, 0},
	{"content.file_size", func(l *limits) any { return &l.content.FileSize }, kib, 0},
	{"content.total_size", func(l *limits) any { return &l.content.TotalSize }, kib, gib},
	{"content.yaml_depth", func(l *limits) any { return &l.content.Depth }, 8, 1_000},
	{"content.yaml_nodes", func(l *limits) any { return &l.content.Nodes }, 100, 0},
	{"content.yaml_aliases", func(l *limits) any { return &l.content.Aliases }, 1, 0},
	{"content.yaml_entries", func(l *limits) any { return &l.content.Entries }, 10, 1_000_000},
	{"content.string", func(l *limits) any { return &l.content.Text }, 256, 16 * mib},
	{"content.include_depth", func(l *limits) any { return &l.content.Chain }, 1, 100},
	{"content.include_files", func(l *limits) any { return &l.content.Included }, 1, 0},
	{"content.services", func(l *limits) any { return &l.content.Services }, 1, 100_000},
	{"content.ports", func(l *limits) any { return &l.content.Ports }, 1, 1_000_000},
	{"content.replicas", func(l *limits) any { return &l.content.Replicas }, 1, 100_000},
	{"content.mounted_files", func(l *limits) any { return &l.content.ContentFiles }, 1, 0},
	{"content.mounted_file", func(l *limits) any { return &l.content.ContentFile }, kib, 0},
	{"content.mounted_folder", func(l *limits) any { return &l.content.ContentSize }, kib, 0},

	{"webhook.body", func(l *limits) any { return &l.hooks.Body }, kib, gib},
	{"webhook.read_timeout", func(l *limits) any { return &l.hooks.Within }, int64(time.Second), int64(10 * time.Minute)},
	{"webhook.concurrent", func(l *limits) any { return &l.hooks.AtOnce }, 1, 10_000},
	{"webhook.rate", func(l *limits) any { return &l.hooks.Rate }, 1, 1_000_000},
}

// sizesInMemory are fields of type int that count bytes all the same.
var sizesInMemory = []string{"content.string"}

func keyNamed(name string) limitKey {
	return limitKeys[slices.IndexFunc(limitKeys, func(k limitKey) bool { return k.name == name })]
}

func (k limitKey) unit(l *limits) unit {
	switch k.field(l).(type) {
	case *time.Duration:
		return span
	case *int64:
		return size
	}
	if slices.Contains(sizesInMemory, k.name) {
		return size
	}
	return count
}

func (k limitKey) most(u unit) int64 { return cmp.Or(k.ceiling, u.most) }

func (k limitKey) put(l *limits, v int64) {
	switch f := k.field(l).(type) {
	case *int64:
		*f = v
	case *time.Duration:
		*f = time.Duration(v)
	case *int:
		*f = int(v)
	}
}

// defaultLimits are what counts where nobody says anything else.
var defaultLimits = limits{gitsync.DefaultLimits(), manifest.DefaultLimits(), api.DefaultHookLimits()}

func (k limitKey) otherwise() int64 { return k.said(&defaultLimits) }

// said is the value of the field; 0 where nobody set it.
func (k limitKey) said(l *limits) int64 {
	switch f := k.field(l).(type) {
	case *int64:
		return *f
	case *time.Duration:
		return int64(*f)
	case *int:
		return int64(*f)
	}
	return 0
}

// value is what counts.
func (k limitKey) value(l *limits) int64 { return cmp.Or(k.said(l), k.otherwise()) }
