package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASizeIsReadAsTheKernelReadsIt(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "64m": 64 << 20, "64M": 64 << 20, "2g": 2 << 30, "1T": 1 << 40, "0x10": 16, "0X1k": 1 << 10, "010": 8, "010k": 8 << 10,
	} {
		got, ok := kernelSize(text)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "50%", "-1", "1.5g", "9223372036854775807t", "0x", "08", "1_000", "g"} {
		_, ok := kernelSize(text)
		require.False(t, ok, text)
	}
}

func TestOfSeveralSizesTheLargestCounts(t *testing.T) {
	for options, bytes := range map[string]int64{
		"": 0, "mode=1777": 0, "size=1m,size=1g": 1 << 30, "size=1g,size=1m": 1 << 30, "nr_blocks=1k": 4 << 20, "nr_inodes=1k": 0, "size=1k,nr_blocks=1": 4 << 10,
	} {
		got := tmpfsAsWritten("/t", options, tmpfsMax)
		require.Empty(t, got.bad, options)
		require.Equal(t, bytes, got.bytes, options)
	}
	for _, options := range []string{"size=0", "size=3g", "SIZE=3g", "size=50%", "nr_blocks=0", "nr_blocks=524289", "nr_inodes=0", "nr_inodes=3m", "size=1m, size=0"} {
		require.NotEmpty(t, tmpfsAsWritten("/t", options, tmpfsMax).bad, options)
	}
}
