//go:build !linux

package runtime

import "errors"

// noLinks is asked on the host of the containers only, which is Linux.
func noLinks(string, []string) error {
	return errors.New("cannot open a path without following links: only Linux can")
}
