// Package history says what became of each commit on a host: of the lines of its journal, and of
// what its status tells now. The daemon asks it of its own host, and a hub of others.
package history
