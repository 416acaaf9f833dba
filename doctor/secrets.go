package doctor

import "strings"

// secretChecks are of encrypted files. Where no key is named nothing is opened, and the rest
// is of no matter.
func secretChecks(s *Secrets) []Check {
	keys := keyFileCheck(s)
	if s.Asked.Asked && len(s.Keys) == 0 {
		return []Check{keys}
	}
	return []Check{keys, secretRebootCheck(s), swapCheck(s)}
}

func keyFileCheck(s *Secrets) Check {
	c, skipped := a("secrets", "key files").unless(s.Asked)
	switch {
	case skipped:
		return c
	case len(s.Keys) == 0:
		return c.is(OK, "", "none is named, and no encrypted file is opened")
	}
	var missing, open, unknown []string
	for _, k := range s.Keys {
		switch {
		case k.Missing:
			missing = append(missing, k.Path)
		case k.Err != "" || !k.Asked.Asked:
			unknown = append(unknown, k.Path)
		case k.Others:
			open = append(open, k.Path)
		}
	}
	switch {
	case len(missing) > 0:
		return c.is(Fail, "put it back from its copy: without it the daemon does not start again", "%s is not there", strings.Join(missing, ", "))
	case len(open) > 0:
		return c.is(Fail, "chmod 600 "+strings.Join(open, " ")+", and change the key if somebody may have read it", "others may read or write %s", strings.Join(open, ", "))
	case len(unknown) > 0:
		return c.is(Skip, "", "cannot be looked at: %s", strings.Join(unknown, ", "))
	}
	return c.is(OK, "", "%d, closed to others", len(s.Keys))
}

func secretRebootCheck(s *Secrets) Check {
	c, skipped := a("secrets", "reboot").unless(s.Asked)
	switch {
	case skipped:
		return c
	case s.Memory && !s.Unit:
		return c.is(Warn, "systemctl enable gitring-secrets places them first; or write secrets: {at_rest: disk}",
			"after a reboot without gitring containers with secret files do not start: the files are in memory")
	case s.Memory:
		return c.is(OK, "", "gitring-secrets.service places the files before the engine starts")
	}
	if s.Before > 0 {
		return c.is(Warn, "gitring restart <app/service> makes their containers anew, on the files that lie on the disk",
			"containers of before mount %d of the folders in %s, which a reboot empties", s.Before, s.Dir)
	}
	return c.is(OK, "", "the files lie on the disk")
}

func swapCheck(s *Secrets) Check {
	c, skipped := a("secrets", "swap").unless(s.Asked)
	if skipped {
		return c
	}
	if !s.Memory {
		return c.is(OK, "", "the files lie on the disk anyway")
	}
	if c, skipped = c.unless(s.Swap.Asked); skipped {
		return c
	}
	switch {
	case s.Swap.On && !s.Swap.Kept:
		return c.is(Warn, "mount a tmpfs with noswap there (Linux 6.4), or encrypt the swap", "what is in %s may be written to the swap of this host", s.Dir)
	case s.Swap.On:
		return c.is(OK, "", "the mount of %s keeps off it", s.Dir)
	}
	return c.is(OK, "", "this host has none")
}
