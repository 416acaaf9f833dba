package wording

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbersHaveTheirWord(t *testing.T) {
	require.Equal(t, []string{"0 apps", "1 app", "2 apps", "1 crash", "4 crashes", "2 branches", "3 boxes"}, []string{
		Counted(0, "app"), Counted(1, "app"), Counted(2, "app"), Counted(1, "crash"), Counted(4, "crash"), Counted(2, "branch"), Counted(3, "box"),
	})
}
