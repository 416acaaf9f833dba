package ring

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMoveIsJudgedByTheShapeOfTheTags(t *testing.T) {
	for _, tt := range []struct {
		from, to, kind string
		up, ok         bool
	}{
		{"1.27", "1.28", MoveMinor, true, true},
		{"1.27", "2.0", MoveMajor, true, true},
		{"1.27.1", "1.27.2", MovePatch, true, true},
		{"1.27-alpine3.20", "1.28-alpine3.21", MoveMinor, true, true},
		{"1.27-alpine3.20", "1.28-alpine3.19", MoveMinor, true, true}, // the first that differs decides
		{"1.27-alpine3.20", "1.27-alpine3.21", MovePatch, true, true},
		{"4.0.9-ls78", "4.0.10-ls79", MovePatch, true, true},
		{"2024.12.1", "2025.1.0", MoveMajor, true, true},
		{"v1.9.0", "v1.10.0", MoveMinor, true, true},
		{"1.28", "1.27", MoveMinor, false, true},
		{"2", "1", MoveMajor, false, true},
		{"9", "10", MoveMajor, true, true},
		{"20241231", "20250101", MoveMajor, true, true},
		{"99999999999999999999999999999999", "100000000000000000000000000000000", MoveMajor, true, true},
		{"1.27", "1.27-alpine", "", false, false},
		{"1.27", "1.27.1", "", false, false},
		{"stable", "1.27", "", false, false},
		{"stable", "latest", "", false, false},
		{"v1", "1", "", false, false},
		{"1-a", "2-b", "", false, false},
		{"1.27", "1.27", "", false, false},
		{"1.027", "1.27", "", false, false}, // other texts of the same numbers
		{"", "1", "", false, false},
		{"sha-9f3a", "sha-b1c2", "", false, false},
	} {
		kind, up, ok := TagMove(tt.from, tt.to)
		require.Equal(t, tt.ok, ok, "%s -> %s", tt.from, tt.to)
		require.Equal(t, tt.kind, kind, "%s -> %s", tt.from, tt.to)
		require.Equal(t, tt.up, up, "%s -> %s", tt.from, tt.to)
	}
}

func TestNewerTagsAreThoseOfTheSameShape(t *testing.T) {
	of := []string{"latest", "1.28", "1.9", "1.27", "2.0", "1.27-alpine", "1.27.1", "1.28", "1.100", "0.9", "1.28-rc1"}
	require.Equal(t, []string{"2.0", "1.100", "1.28"}, NewerTags("1.27", of))
	require.Empty(t, NewerTags("stable", of))
	require.Equal(t, []string{"3.1-b", "2.9-b"}, NewerTags("2.1-b", []string{"2.9-b", "3.1-b", "4.0-a"}))
}
