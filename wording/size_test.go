package wording

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASizeIsSaidExactlyRoundedOrShort(t *testing.T) {
	for _, tt := range []struct {
		n                            int64
		exact, round, short, setting string
	}{
		{-5, "-5 bytes", "0 B", "-0KiB", "-5B"},
		{0, "0 bytes", "0 B", "0KiB", "0B"},
		{1000, "1000 bytes", "1000 B", "1KiB", "1000B"},
		{1023, "1023 bytes", "1023 B", "1KiB", "1023B"},
		{1 << 10, "1 KiB", "1 KiB", "1KiB", "1KiB"},
		{1<<10 + 1, "1025 bytes", "1.0 KiB", "1KiB", "1025B"},
		{3 << 9, "1536 bytes", "1.5 KiB", "2KiB", "1536B"},
		{64 << 10, "64 KiB", "64 KiB", "64KiB", "64KiB"},
		{3 << 19, "1536 KiB", "1.5 MiB", "2MiB", "1536KiB"},
		{64 << 20, "64 MiB", "64 MiB", "64MiB", "64MiB"},
		{512 << 20, "512 MiB", "512 MiB", "512MiB", "512MiB"},
		{1 << 30, "1 GiB", "1 GiB", "1.0GiB", "1GiB"},
		{3 << 29, "1536 MiB", "1.5 GiB", "1.5GiB", "1536MiB"},
		{8<<30 + 1, "8589934593 bytes", "8.0 GiB", "8.0GiB", "8589934593B"},
		{2 << 40, "2048 GiB", "2048 GiB", "2048.0GiB", "2TiB"},
	} {
		require.Equal(t, tt.exact, ExactSize(tt.n), tt.n)
		require.Equal(t, tt.round, RoundSize(tt.n), tt.n)
		require.Equal(t, tt.short, ShortSize(tt.n), tt.n)
		require.Equal(t, tt.setting, SettingSize(tt.n), tt.n)
		if tt.n >= 0 {
			read, ok := ParseSize(tt.setting)
			require.True(t, ok, tt.setting)
			require.Equal(t, tt.n, read)
		}
	}
	for _, s := range []string{"", "MiB", "1.5GiB", "1 kB", "9999999TiB", "1iB"} {
		_, ok := ParseSize(s)
		require.False(t, ok, s)
	}
}
