package store

// LeftOut is an error about rows that are for people alone and cannot be read: what was
// asked for comes without them. No decision reads such rows, so they are no damage; Trim
// lets them go as it does others of their age.
type LeftOut struct{ rows badRows }

func (l *LeftOut) Error() string {
	return l.rows.Error() + "; what is left out goes with its age, nothing is to be done"
}

// without is nil for no rows.
func without(rows badRows) error {
	if len(rows) == 0 {
		return nil
	}
	return &LeftOut{rows}
}
