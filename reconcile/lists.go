package reconcile

import "github.com/gitring/gitring/ring"

// The lists that every worker's pass begins with, whatever its strategy.
var (
	// beginRules see through what an earlier pass or an earlier daemon began.
	beginRules = []rule{
		{name: "replace what cannot start", ask: (*Pass).brokenInstance},
		intentRule,
		{name: "leave the port to the service", ask: (*Pass).frontAside},
		{name: "take the port back", ask: (*Pass).takePortBack},
		{name: "keep stopped ones stopped", each: eachOf((*Pass).asideInstance)},
		tieRule,
		{name: "follow former runs", runs: (*decider).formerRuns},
		{name: "remove former runs", each: eachOf((*Pass).formerRun)},
	}
	intentRule = rule{name: "see intents through", each: eachOf((*Pass).meantBefore)}
	tieRule    = rule{name: "join namespaces again", each: eachOf((*Pass).cutInstance)}
	// healRules keep alive what should run: a crashed instance starts again, with its own
	// spec, inside its backoff.
	healRules = []rule{
		{name: "note what ended with the engine", ask: (*Pass).engineEnded},
		{name: "start a silent front anew", each: []func(*Pass, *service, *instance) outcome{(*Pass).silentProxy, (*Pass).hopelessFront}},
		{name: "restart what ended", each: []func(*Pass, *service, *instance) outcome{
			(*Pass).interruptedInstance, (*Pass).engineRestarted, (*Pass).unliveInstance, (*Pass).stableInstance, (*Pass).endedInstance,
		}},
	}
	// waitRules are for a first version that may not start yet.
	waitRules = healRules
	// stoppedRules are for a rollout that stopped where it is.
	stoppedRules = []rule{
		{name: "start what was created", ask: (*Pass).createdInstance},
		healRules[0], healRules[1], healRules[2],
		{name: "complete", ask: (*Pass).completionStopped},
	}
	// doubleRules leave one instance to a slot that has an adopted one, too.
	doubleRules = []rule{{name: "drop doubles", ask: (*Pass).doubleInstance}}
	// keptRules keep alive what left the plan and is needed still.
	keptRules = stoppedRules[:4]
	// olderRules keep alive what is newer than what is remembered, and do nothing else.
	olderRules = listOf([]rule{tieRule}, keptRules)
	// clusterRules are for a service that a cluster schedules: it is sent specs, and judged.
	clusterRules = []rule{
		intentRule,
		{name: "follow former runs", runs: (*decider).formerRuns},
		{name: "remove former runs", each: eachOf((*Pass).formerRun)},
		{name: "count what a hand changed", ask: (*Pass).changedSpec},
		{name: "send another spec", ask: (*Pass).anotherSpec},
		{name: "send again what stopped", ask: (*Pass).stoppedSpec},
		clusterStoppedRules[0],
	}
	// clusterStoppedRules are for a rollout that stopped where it is.
	clusterStoppedRules = []rule{{name: "complete", ask: (*Pass).completionOutcome}}
	// policyRules set the engine's restart policy to what the Compose file says.
	policyRules = []rule{{name: "set restart policies", each: eachOf((*Pass).otherPolicy)}}
	// nameRules give the names that Compose gives to what serves.
	nameRules = []rule{{name: "take Compose's name", each: eachOf((*Pass).longNamed)}}
	// cronRules come before each run of a cron job.
	cronRules = jobRules[:3]
	// jobRules come before each run of a job.
	jobRules = []rule{
		intentRule,
		tieRule,
		{name: "remove former workers", ask: (*Pass).formerWorker},
		{name: "follow runs", runs: (*decider).followRuns},
		{name: "remove old runs", each: eachOf((*Pass).oldRun)},
	}
)

// init has the rows of strategies: the rules ask for the strategy themselves.
func init() {
	keep := listOf([]rule{{name: "reload in place", ask: (*Pass).staleFiles}, {name: "complete", ask: (*Pass).completionOutcome}}, policyRules, nameRules)
	side := []rule{
		{name: "drop failed instances", ask: (*Pass).failedInstance},
		{name: "start what was created", ask: (*Pass).createdInstance},
		healRules[0], healRules[1], healRules[2],
		{name: "create one more", ask: (*Pass).oneMore},
		{name: "give the port to the front", ask: (*Pass).givePort},
	}
	shrink := rule{name: "remove one not wanted", ask: (*Pass).oneNotWanted}
	added := rule{name: "wait for the front that is added", ask: (*Pass).awaitAdded}
	for _, s := range []strategy{
		{name: ring.Rolling, overlaps: true, rules: listOf(side, []rule{added, shrink}, keep)},
		{
			name: ring.BlueGreen, overlaps: true, secondSet: true, room: roomForSecondSet,
			rules: listOf(side, []rule{{name: "switch sets", ask: (*Pass).switchSets}, added, shrink}, keep),
		},
		{
			name: ring.Canary, overlaps: true, steps: true,
			rules: listOf(side, []rule{{name: "go through the steps", ask: (*Pass).canaryStep}, added, shrink}, keep),
		},
		{name: ring.Recreate, rules: listOf([]rule{
			{name: "drop failed instances", ask: (*Pass).failedInstance},
			{name: "remove what has no slot", ask: (*Pass).slotlessInstance},
			{name: "remove what was superseded", ask: (*Pass).supersededInstance},
			{name: "move slots one by one", slot: (*Pass).slotMove},
			{name: "take the name", each: eachOf((*Pass).unnamedInstance)},
		}, keep)},
	} {
		strategies[s.name] = s
	}
}

func eachOf(ask func(*Pass, *service, *instance) outcome) []func(*Pass, *service, *instance) outcome {
	return []func(*Pass, *service, *instance) outcome{ask}
}

func listOf(parts ...[]rule) (out []rule) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}
