// Package doctor says what is wrong with a host, or soon will be. Each check is a pure
// function of what a probe returned: who asks the world stands elsewhere, so every answer can
// be tried. What could not be found out is skipped, and never ok.
//
//	report    the checks, and what became of each
//	seen      what the probes return
//	judge     all checks, in order
//	engine    of the engine, and of a reboot
//	state     of the state directory, and of the clock
//	secrets   of encrypted files and their keys
//	source    of sources, trust, forges and registries
//	people    of doors, groups and apps
package doctor
