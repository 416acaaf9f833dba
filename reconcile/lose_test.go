package reconcile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ways are sequences of commits by which data was lost, or would be, where Compose is asked
// to carry them out. shop/db serves on a volume, files/web on a folder.
var ways = []struct{ name, story, expect string }{
	{"renamed, and reverted without a word", "service store/db min_ready 1s volume pg\ncommit c2 -shop store/db=pg:1\nrest\ncommit c3 like c1", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"renamed with an answer, reverted, and renamed again", "service store/db min_ready 1s volume pg\ncommit c2 -shop store/db=pg:1 answer=store:shop\nrest\ncommit c3 like c1\nrest\ncommit c4 like c2", "only store/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"renamed twice, an answer each time", "service store/db min_ready 1s volume pg\ncommit c2 -shop store/db=pg:1 answer=store:shop\nrest\nservice bazaar/db min_ready 1s volume pg\ncommit c3 -store bazaar/db=pg:1 answer=bazaar:store", "only bazaar/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"renamed twice before anybody answers", "service store/db min_ready 1s volume pg\ncommit c2 -shop store/db=pg:1\nrest\nservice bazaar/db min_ready 1s volume pg\ncommit c3 -store bazaar/db=pg:1", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"renamed twice, and answered once, by the first name", "service store/db min_ready 1s volume pg\ncommit c2 -shop store/db=pg:1\nrest\nservice bazaar/db min_ready 1s volume pg\ncommit c3 -store bazaar/db=pg:1 answer=bazaar:shop", "only bazaar/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"from an app that still runs", "service store/db min_ready 1s volume pg from shop\ncommit c2 store/db=pg:1", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"an answer for an app that still runs", "service store/db min_ready 1s volume pg\ncommit c2 store/db=pg:1 answer=store:shop", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"from one app by two", "service store/db min_ready 1s volume pg from shop\nservice bazaar/db min_ready 1s volume pg from shop\ncommit c2 -shop store/db=pg:1 bazaar/db=pg:1", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"answers for two", "service store/db min_ready 1s volume pg\nservice bazaar/db min_ready 1s volume pg\ncommit c2 -shop store/db=pg:1 bazaar/db=pg:1 answer=store:shop answer=bazaar:shop", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"from a misspelt app", "service store/db min_ready 1s volume pg from shpo\ncommit c2 -shop store/db=pg:1", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"an answer that names a misspelt app", "service store/db min_ready 1s volume pg\ncommit c2 -shop store/db=pg:1 answer=store:shpo", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"an answer for a misspelt app", "service store/db min_ready 1s volume pg\ncommit c2 -shop store/db=pg:1 answer=stroe:shop", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"the key of the volume", "service shop/db volume data\ncommit c2 shop/db=pg:1", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"a folder instead of the volume", "service shop/db data shop/pg\ncommit c2 shop/db=pg:1", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"a volume instead of the folder", "service files/web volume data\ncommit c2 files/web=w:1", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"external, and not any more", "service shop/db external shop_pg\ncommit c2 shop/db=pg:1\nrest\nservice shop/db volume pg\ncommit c3 shop/db=pg:1", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"another external one", "service shop/db external other\ncommit c2 shop/db=pg:1\nrest\nservice shop/db volume data\ncommit c3 shop/db=pg:1\nrest\ncommit c4 like c1", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"the database moves to an app of its own", "service base/db min_ready 1s volume pg\nservice shop/web min_ready 1s\ncommit c2 shop/web=w:2 -shop/db base/db=pg:1", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"and comes a commit later", "service base/db min_ready 1s volume pg\nservice shop/web min_ready 1s\ncommit c2 shop/web=w:2 -shop/db\nrest\ncommit c3 base/db=pg:1", "only shop/web-1 w:2 ready, files/web-1 w:1 ready"},
	{"away, and under another name", "service store/db min_ready 1s volume pg\ncommit c2 -shop\nrest\ncommit c3 store/db=pg:2", "only files/web-1 w:1 ready"},
	{"away, and back", "commit c2 -shop\nrest\ncommit c3 like c1", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"taken over, and the first name comes back beside it", "service store/db min_ready 1s volume pg\ncommit c2 -shop store/db=pg:1 answer=store:shop\nrest\ncommit c3 shop/db=pg:1", "only store/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"taken over while the volume is gone", "service store/db min_ready 1s volume pg\ncommit c2 -shop\nrest\nfault volume shop_pg is gone\ncommit c3 store/db=pg:1 answer=store:shop\nwait 1h\nfault volume shop_pg is back", "only store/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"the folder moves with its app", "service cloud/web min_ready 1s data cloud/data\ncommit c2 -files cloud/web=w:1", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"the folder is taken over, and its first app comes back", "service cloud/web min_ready 1s data cloud/data\ncommit c2 -files cloud/web=w:1 answer=cloud:files\nrest\ncommit c3 files/web=w:1", "only shop/db-1 pg:1 ready, cloud/web-1 w:1 ready"},
	{"the folder is taken over, and both are reverted", "service cloud/web min_ready 1s data cloud/data\ncommit c2 -files cloud/web=w:1 answer=cloud:files\nrest\ncommit c3 like c1", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"renamed while the old one is refused", "service store/db min_ready 1s volume pg from shop\ncommit c2 store/db=pg:1 refused shop", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
	{"renamed to one that never is ready", "version pg:9 never ready\nservice store/db min_ready 1s start_timeout 20s threshold 1 volume pg\ncommit c2 -shop store/db=pg:9 answer=store:shop\nrest\ncommit c3 like c1", "only shop/db-1 pg:1 ready, files/web-1 w:1 ready"},
}

// Each of them ends with what the commits asked for where that is safe, and else with what
// ran. Nothing is made empty but what a commit asks for, and the engine of the
// simulation sees that no two write one thing and that nothing is removed.
func TestNoSequenceOfCommitsLosesData(t *testing.T) {
	const begin = "host asks for data\nservice shop/db min_ready 1s volume pg\nservice files/web min_ready 1s data files/data\ncommit c1 shop/db=pg:1 files/web=w:1\nrest"
	for _, way := range ways {
		for _, wait := range []int{0, 1, 2, 3, 5, 8, 13} { // seconds after each commit at which the daemon is killed
			t.Run(fmt.Sprintf("%s/%d", way.name, wait), func(t *testing.T) {
				killed := "\nwait 1s"
				if wait > 0 {
					killed = fmt.Sprintf("\nwait %ds\nfault the daemon is killed\nrest", wait)
				}
				lines := strings.ReplaceAll("\n"+way.story, "\nrest", killed+"\nrest")
				s := newStory()
				for _, line := range strings.Split(begin+lines+killed+"\nwait 2h\nexpect "+way.expect, "\n") {
					require.NoError(t, s.tell(line), line)
					require.NoError(t, s.bad, line)
				}
				for _, name := range []string{"volume shop_pg", "data files/data"} {
					require.True(t, s.volumes[name], "%s is there", name)
				}
				for name := range s.volumes {
					require.Contains(t, []string{"volume shop_pg", "data files/data"}, name, "begins empty in silence")
				}
			})
		}
	}
}
