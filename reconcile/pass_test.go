package reconcile

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// TestAPassOnlyReads holds what the compiler does not see: no method of Pass changes the
// facts, or what was decided. It may note when to look again, and keep what it computed.
func TestAPassOnlyReads(t *testing.T) {
	fset := token.NewFileSet()
	methods := 0
	for _, file := range productFiles(t) {
		parsed, err := parser.ParseFile(fset, file, nil, 0)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || receiverType(fn) != "Pass" {
				continue
			}
			methods++
			for _, at := range writesIn(fn) {
				t.Errorf("%s: %s is a method of Pass, and writes", fset.Position(at), fn.Name.Name)
			}
		}
	}
	require.Greater(t, methods, 50)
}

func TestWritesOfAPassAreFound(t *testing.T) {
	for text, found := range map[string]int{
		"p.steps = append(p.steps, a)":       1,
		"p.overview.Host = p.Host":           1,
		"p.probes[0] = probe":                1,
		"p.Facts.Put(table, key, f)":         1,
		"p.Facts.Apps[app] = f":              1,
		"delete(p.Facts.Apps, app)":          1,
		"steps := p.steps; n := len(steps)":  0,
		"p.soonest = at":                     0,
		"return p.Facts.Apps[app].App.Steps": 0,
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc (p *Pass) f() {\n"+text+"\n}", 0)
		require.NoError(t, err)
		require.Len(t, writesIn(parsed.Decls[0].(*ast.FuncDecl)), found, text)
	}
}

// TestViewsFollowFacts holds that the row of a service and the intent of an instance are
// set from the fact that says so, in one function, and where a view is made.
func TestViewsFollowFacts(t *testing.T) {
	makers := map[string]bool{"implyViews": true, "makeView": true, "indexSeen": true}
	fset, found := token.NewFileSet(), 0
	for _, file := range productFiles(t) {
		parsed, err := parser.ParseFile(fset, file, nil, 0)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				as, ok := n.(*ast.AssignStmt)
				if !ok {
					return true
				}
				for _, left := range as.Lhs {
					if !ofView(left) {
						continue
					}
					found++
					if !makers[fn.Name.Name] {
						t.Errorf("%s: %s writes what a fact implies; set the fact", fset.Position(left.Pos()), fn.Name.Name)
					}
				}
				return true
			})
		}
	}
	require.GreaterOrEqual(t, found, 4)
}

// TestViewsAreSetByFew holds that a rule does not change the view that it was asked about:
// what comes of it is its outcome. Views are made by few functions, named here, and changed
// by who carries outcomes out.
func TestViewsAreSetByFew(t *testing.T) {
	makers := map[string]string{
		"judgeInstance": "what is known of an instance", "judgeTask": "what is known of one of a cluster", "judgeRun": "the same of a run of a job", "judgeFront": "what is known of an instance that is a front", "chooseTarget": "the target", "useGoodFiles": "the target, with the files that were good",
		"joinGroups": "the group", "changeReason": "what it computed once", "wantedWrites": "what it computed once", "goodWrites": "what it computed once",
		"aloneBecause": "what it computed once", "inSlot": "what it computed once",
	}
	met := map[string]bool{}
	fset := token.NewFileSet()
	for _, file := range productFiles(t) {
		parsed, err := parser.ParseFile(fset, file, nil, 0)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || fn.Recv == nil || receiverType(fn) == "decider" {
				continue
			}
			views := viewsOf(fn)
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				as, ok := n.(*ast.AssignStmt)
				if !ok {
					return true
				}
				for _, left := range as.Lhs {
					sel, ok := left.(*ast.SelectorExpr)
					if !ok {
						continue
					}
					if id, ok := sel.X.(*ast.Ident); !ok || !views[id.Name] {
						continue
					}
					met[fn.Name.Name] = true
					if makers[fn.Name.Name] == "" {
						t.Errorf("%s: %s changes a view; say it in the outcome", fset.Position(left.Pos()), fn.Name.Name)
					}
				}
				return true
			})
		}
	}
	for name := range makers {
		require.True(t, met[name], "%s changes no view any more", name)
	}
}

// viewsOf are the names under which a function has views: of services and instances.
func viewsOf(fn *ast.FuncDecl) map[string]bool {
	out := map[string]bool{}
	for _, list := range []*ast.FieldList{fn.Recv, fn.Type.Params} {
		for _, f := range list.List {
			star, ok := f.Type.(*ast.StarExpr)
			if !ok {
				continue
			}
			if id, ok := star.X.(*ast.Ident); ok && (id.Name == "service" || id.Name == "instance") {
				for _, n := range f.Names {
					out[n.Name] = true
				}
			}
		}
	}
	return out
}

// ofView reports whether an expression is x.rollout, a field of x.rollout, or x.intent.
func ofView(e ast.Expr) bool {
	for {
		sel, ok := e.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		if sel.Sel.Name == "rollout" || sel.Sel.Name == "intent" {
			return true
		}
		e = sel.X
	}
}

func productFiles(t *testing.T) (out []string) {
	t.Helper()
	all, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range all {
		if !strings.HasSuffix(file, "_test.go") {
			out = append(out, file)
		}
	}
	return out
}

// receiverType is the name of the type of a method; "" for a function.
func receiverType(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	name, _ := of.(*ast.Ident)
	return name.Name
}

// writesIn are the places where a function changes facts, steps, probes or the overview.
func writesIn(fn *ast.FuncDecl) (at []token.Pos) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if isDecided(left) {
					at = append(at, left.Pos())
				}
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Put" || sel.Sel.Name == "Own") && isDecided(sel.X) {
				at = append(at, n.Pos())
			}
			if name, ok := n.Fun.(*ast.Ident); ok && (name.Name == "delete" || name.Name == "clear") && isDecided(n.Args[0]) {
				at = append(at, n.Pos())
			}
		}
		return true
	})
	return at
}

// isDecided reports whether an expression is a part of what only a decider changes.
func isDecided(e ast.Expr) bool {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			if _, ofPass := x.X.(*ast.Ident); ofPass {
				switch x.Sel.Name {
				case "Facts", "steps", "probes", "overview":
					return true
				}
			}
			e = x.X
		default:
			return false
		}
	}
}

// TestStrategiesAreRowsOfOneTable holds that no rule asks which strategy a service has:
// what differs between them is a field of their row.
func TestStrategiesAreRowsOfOneTable(t *testing.T) {
	words := map[string]bool{"Rolling": true, "BlueGreen": true, "Recreate": true}
	fset, found := token.NewFileSet(), 0
	for _, file := range productFiles(t) {
		parsed, err := parser.ParseFile(fset, file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if ok && sel.Sel.Name == "Room" && filepath.Base(file) != "strategy.go" {
				t.Errorf("%s: Room knows no strategy; ask roomOf", fset.Position(sel.Pos()))
			}
			if !ok || !words[sel.Sel.Name] {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "ring" {
				found++
				if name := filepath.Base(file); name != "strategy.go" && name != "lists.go" {
					t.Errorf("%s: ring.%s belongs in the table of strategies", fset.Position(sel.Pos()), sel.Sel.Name)
				}
			}
			return true
		})
	}
	require.GreaterOrEqual(t, found, len(words))
	for word := range map[string]bool{ring.Rolling: true, ring.BlueGreen: true, ring.Recreate: true} {
		require.Equal(t, word, strategyNamed(word).name)
	}
	require.Equal(t, ring.Rolling, strategyNamed("").name)
}

// TestStrategiesSayTheirRoom holds how far a rollout may go above and below its count to
// the oracle's own figures, and that the knobs alone tell no strategy from another.
func TestStrategiesSayTheirRoom(t *testing.T) {
	for word := range strategies {
		for _, percent := range []bool{false, true} {
			for n := range 6 {
				for _, size := range [][2]int{{0, 0}, {1, 0}, {0, 1}, {2, 1}, {30, 30}, {100, 100}} {
					k := ring.Rollout{Strategy: word, MaxSurge: ring.Count{N: size[0], Percent: percent}, MaxUnavailable: ring.Count{N: size[1], Percent: percent}}
					more, fewer := bounds(k, n)
					up, down := roomOf(k, n)
					require.Equal(t, []int{more, fewer}, []int{up, down}, "%d of %+v", n, k)
					up, down = k.Room(n)
					k.Strategy = ring.Rolling
					more, fewer = k.Room(n)
					require.Equal(t, []int{more, fewer}, []int{up, down}, "the strategy's row says what differs: %+v", k)
				}
			}
		}
	}
	up, down := roomOf(ring.Rollout{Strategy: ring.BlueGreen, MaxUnavailable: ring.Count{N: 2}}, 3)
	require.Equal(t, []int{3, 0}, []int{up, down}, "a second set stands beside all of the first")
}

// TestNamesSayWhatTheyDo holds that no function is called by a bare preposition, pronoun or
// adverb: its name says what it returns or does, with its object.
func TestNamesSayWhatTheyDo(t *testing.T) {
	bare := strings.Fields("about above after again ago all also among any apart around as at away before behind below " +
		"beside between beyond by each ever except first for from hence here how inside into it its last left like mine " +
		"near never next now of off on once only other others ours out outside over own same short since so some soon such " +
		"than that then there these this those through to together twice under until up was were what when where which " +
		"while who whole whose why will with within without would yet")
	fset := token.NewFileSet()
	for _, file := range productFiles(t) {
		parsed, err := parser.ParseFile(fset, file, nil, 0)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && slices.Contains(bare, fn.Name.Name) {
				t.Errorf("%s: %s says too little", fset.Position(fn.Pos()), fn.Name.Name)
			}
		}
	}
}
