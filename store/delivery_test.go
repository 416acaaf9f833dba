package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func note(n int, at time.Time) ring.Delivery {
	return ring.Delivery{ID: fmt.Sprintf("team/%d", n), Kind: "app.refused", Subject: "web", Body: []byte(`{}`), Queued: at}
}

func idsOf(ds []ring.Delivery) (ids []string) {
	for _, d := range ds {
		ids = append(ids, d.ID)
	}
	return ids
}

func TestAReceiversCursorAndItsMessagesMoveTogether(t *testing.T) {
	ctx := context.Background()
	s := opened(t, t.TempDir())
	at := time.Unix(1000, 0).UTC()
	_, known, err := s.Receiver(ctx, "team")
	require.NoError(t, err)
	require.False(t, known)

	require.NoError(t, s.Advance(ctx, ring.Receiver{Name: "team", Cursor: 7, State: []byte(`{"a":1}`)}, []ring.Delivery{note(6, at), note(7, at)}))
	r, known, err := s.Receiver(ctx, "team")
	require.NoError(t, err)
	require.True(t, known)
	require.Equal(t, ring.Receiver{Name: "team", Cursor: 7, State: []byte(`{"a":1}`)}, r)

	// What a restart queues again is one row, also when it was taken meanwhile.
	require.NoError(t, s.Delivered(ctx, "team/6", at))
	require.NoError(t, s.Advance(ctx, r, []ring.Delivery{note(6, at), note(7, at), note(8, at)}))
	due, err := s.Waiting(ctx, "team", 10)
	require.NoError(t, err)
	require.Equal(t, []string{"team/7", "team/8"}, idsOf(due))

	// The whole of it or nothing.
	require.Error(t, s.Advance(failing(ctx), ring.Receiver{Name: "team", Cursor: 9}, []ring.Delivery{note(9, at)}))
	r, _, err = s.Receiver(ctx, "team")
	require.NoError(t, err)
	require.EqualValues(t, 7, r.Cursor)
}

func failing(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func TestWhatIsGivenUpIsSentAgainWhenAPersonAsks(t *testing.T) {
	ctx := context.Background()
	s := opened(t, t.TempDir())
	at := time.Unix(1000, 0).UTC()
	require.NoError(t, s.Advance(ctx, ring.Receiver{Name: "team", Cursor: 3}, []ring.Delivery{note(1, at), note(2, at), note(3, at)}))
	require.NoError(t, s.Postpone(ctx, "team/1", "no answer", at.Add(time.Hour)))
	require.NoError(t, s.GiveUp(ctx, "team/2", "given up", at))
	require.NoError(t, s.Delivered(ctx, "team/3", at))
	require.NoError(t, s.Record(ctx, []ring.Fact{ring.Post{Source: "prod", SHA: "c1", Context: "gitring/h", State: ring.PostSuccess, Description: "d", At: at}}, nil))
	post := ring.PostKey("c1", "gitring/h")
	require.NoError(t, s.Dead(ctx, post, 1, "the forge answered 403"))

	all, err := s.NotArrived(ctx)
	require.NoError(t, err)
	says := map[string]string{}
	for _, u := range all {
		says[u.ID] = fmt.Sprint(u.To, " ", u.State, " ", u.Attempts, " ", u.Reason)
	}
	require.Equal(t, map[string]string{
		post: "prod dead 0 the forge answered 403", "team/1": "team waiting 1 no answer", "team/2": "team dead 1 given up",
	}, says)

	n, err := s.SayAgain(ctx, "team/3", false)
	require.NoError(t, err)
	require.Zero(t, n, "it was taken")
	n, err = s.SayAgain(ctx, "", false)
	require.NoError(t, err)
	require.Equal(t, 2, n, "the dead ones")
	waiting, dead, err := s.Undelivered(ctx, "team")
	require.NoError(t, err)
	require.Equal(t, []int{2, 0}, []int{waiting, dead})
	due, err := s.Due(ctx, at, 10)
	require.NoError(t, err)
	require.Len(t, due, 1)
	n, err = s.SayAgain(ctx, "", true)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	ds, err := s.Waiting(ctx, "team", 10)
	require.NoError(t, err)
	require.Equal(t, []string{"team/1", "team/2"}, idsOf(ds))
	for _, d := range ds {
		require.True(t, d.Next.IsZero())
		require.Zero(t, d.Attempts)
	}
}

func TestDeliveriesAreBounded(t *testing.T) {
	ctx := context.Background()
	s := opened(t, t.TempDir())
	at := s.now()
	var many []ring.Delivery
	for i := range mostWaiting + 5 {
		many = append(many, note(i, at))
	}
	require.NoError(t, s.Advance(ctx, ring.Receiver{Name: "team", Cursor: 1}, many))
	waiting, dead, err := s.Undelivered(ctx, "team")
	require.NoError(t, err)
	require.Equal(t, []int{mostWaiting, 5}, []int{waiting, dead})
	ds, err := s.Waiting(ctx, "team", 1)
	require.NoError(t, err)
	require.Equal(t, []string{"team/5"}, idsOf(ds), "the oldest were given up")

	require.NoError(t, s.Delivered(ctx, "team/5", at))
	require.NoError(t, s.Trim(ctx, at.Add(keepTaken-time.Hour)))
	var n int64
	count := func() int64 {
		require.NoError(t, s.db.r.Raw("SELECT count(*) FROM deliveries").Scan(&n).Error)
		return n
	}
	require.EqualValues(t, mostWaiting+5, count())
	require.NoError(t, s.Trim(ctx, at.Add(keepTaken+time.Hour)))
	require.EqualValues(t, mostWaiting+4, count())
	require.NoError(t, s.Trim(ctx, at.Add(keepUndelivered+time.Hour)))
	require.Zero(t, count())
	_, known, err := s.Receiver(ctx, "team")
	require.NoError(t, err)
	require.False(t, known)
}

// Those that are refused one by one wait behind what was never tried.
func TestWhatIsPutOffIsInNobodysWay(t *testing.T) {
	ctx := context.Background()
	s := opened(t, t.TempDir())
	at := s.now()
	require.NoError(t, s.Advance(ctx, ring.Receiver{Name: "team", Cursor: 1}, []ring.Delivery{note(1, at), note(2, at), note(3, at), note(4, at)}))
	require.NoError(t, s.Postpone(ctx, "team/1", "it answered 400", at.Add(2*time.Hour)))
	require.NoError(t, s.Postpone(ctx, "team/2", "it answered 400", at.Add(time.Hour)))
	require.NoError(t, s.Postpone(ctx, "team/3", "it answered 400", at.Add(-time.Second)))
	ds, err := s.Waiting(ctx, "team", 10)
	require.NoError(t, err)
	require.Equal(t, []string{"team/3", "team/4", "team/2", "team/1"}, idsOf(ds))
}

// What a person asks for again, more than may wait, is not given up once more by the
// next event.
func TestTenThousandAreSentAgain(t *testing.T) {
	ctx := context.Background()
	s := opened(t, t.TempDir())
	at := s.now()
	var many []ring.Delivery
	for i := range 10_000 {
		many = append(many, note(i, at))
	}
	require.NoError(t, s.Advance(ctx, ring.Receiver{Name: "team", Cursor: 1}, many))
	n, err := s.SayAgain(ctx, "", true)
	require.NoError(t, err)
	require.Equal(t, 10_000, n)
	require.NoError(t, s.Advance(ctx, ring.Receiver{Name: "team", Cursor: 2}, []ring.Delivery{note(10_000, at)}))
	waiting, dead, err := s.Undelivered(ctx, "team")
	require.NoError(t, err)
	require.Equal(t, []int{10_000, 1}, []int{waiting, dead})
	n, err = s.SayAgain(ctx, "", false) // asked twice
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = s.SayAgain(ctx, "", false)
	require.NoError(t, err)
	require.Zero(t, n)
}
