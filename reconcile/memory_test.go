package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestPlanSaysWhatASecondSetNeeds(t *testing.T) {
	begin := func(memory string) string {
		return "service web replicas 3 parallel 3 min_ready 0s strategy blue_green " + memory + "\nfault memory is now 4096\ncommit c1 web=v1\nrest"
	}
	got := planned(t, begin("memory 512"), "commit c2 web=v2")["web/web"]
	require.Equal(t, ring.ChangeRoll, got.Class)
	require.Equal(t, "a second full set beside the first: 3 instances, 1.5 GiB of memory", got.Needs)

	got = planned(t, begin("memory 1024"), "commit c2 web=v2")["web/web"]
	require.Equal(t, "a second full set beside the first: 3 instances, 3 GiB of memory; it waits until that is free, now 768 MiB are", got.Needs)

	got = planned(t, begin(""), "commit c2 web=v2")["web/web"]
	require.Equal(t, "a second full set beside the first: 3 instances, and the memory that the first set takes once more", got.Needs)

	require.Empty(t, planned(t, begin("memory 512"), "service web replicas 4\ncommit c2 web=v1")["web/web"].Needs, "no second set for a change in place")
}

func TestPlanSaysWhatWaitsForMemory(t *testing.T) {
	with := func(mib string) string {
		return planned(t, "service web replicas 2 min_ready 0s memory 1024\nfault memory is now "+mib+"\ncommit c1 web=v1\nrest", "commit c2 web=v2")["web/web"].Needs
	}
	require.Empty(t, with("4096"))
	require.Equal(t, "1 more beside those that run: 1 GiB of memory; it waits until that is free, now 232 MiB are", with("2432"))
}
