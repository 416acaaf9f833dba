package pages

import (
	"cmp"
	"context"
	"slices"

	"github.com/gitring/gitring/doctor"
)

type doctorView struct {
	At     *moment
	Counts []countView
	Groups []checkGroup
}

type countView struct {
	Mark Mark
	N    int
}

type checkGroup struct {
	About  string
	Checks []doctorCheck
	rank   int
}

type doctorCheck struct {
	Mark             Mark
	Name, Says, Hint string
}

// doctorPage is not live: each look at it may ask the world.
func doctorPage(ctx context.Context, a *asking) (*drawn, error) {
	r, err := a.answers.Doctor(ctx)
	if err != nil {
		return nil, err
	}
	v := &doctorView{At: a.clock.of(r.At)}
	for _, result := range []doctor.Result{doctor.Fail, doctor.Warn, doctor.Skip, doctor.OK} {
		c := countView{Mark: markOf(string(result))}
		for i := range r.Checks {
			if r.Checks[i].Result == result {
				c.N++
			}
		}
		if c.N > 0 {
			v.Counts = append(v.Counts, c)
		}
	}
	for i := range r.Checks {
		c := &r.Checks[i]
		at := slices.IndexFunc(v.Groups, func(g checkGroup) bool { return g.About == c.About })
		if at < 0 {
			at, v.Groups = len(v.Groups), append(v.Groups, checkGroup{About: c.About, rank: ranks[toneGood]})
		}
		m := markOf(string(c.Result))
		v.Groups[at].Checks = append(v.Groups[at].Checks, doctorCheck{m, c.Name, c.Says, c.Hint})
		if c.Result != doctor.Skip {
			v.Groups[at].rank = min(v.Groups[at].rank, m.Rank)
		}
	}
	for i := range v.Groups {
		slices.SortStableFunc(v.Groups[i].Checks, func(x, y doctorCheck) int { return cmp.Compare(x.Mark.Rank, y.Mark.Rank) })
	}
	slices.SortStableFunc(v.Groups, func(x, y checkGroup) int { return cmp.Compare(x.rank, y.rank) })
	return &drawn{template: "doctor", title: "Doctor · " + a.status.Host, view: v}, nil
}
