package reconcile

import "maps"

// Progress tells how far a step in flight is, by its target: the status says it
// from now on, until the step ends. It never blocks.
func (l *Loop) Progress(target, says string) {
	l.mu.Lock()
	l.progress[target] = says
	l.mu.Unlock()
	select {
	case l.far <- struct{}{}:
	default:
	}
}

// forgetProgress forgets how far a step was that ended.
func (l *Loop) forgetProgress(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.progress, target)
}

func (l *Loop) howFar() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.progress)
}

// retellStatus shows the status of the last look anew, with what got further since:
// nothing is observed for it and nothing decided. While the engine or the store
// is away, that they are is what has to be told.
func (l *Loop) retellStatus() {
	if l.said == "" && l.unsaid == "" {
		l.showStatus(Diff(l.makeWorld(), l.steadyNow()).Status)
	}
}
