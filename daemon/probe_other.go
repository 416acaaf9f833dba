//go:build !linux

package daemon

import "github.com/gitring/gitring/doctor"

// A daemon runs on Linux alone: here is only what the client is built with.

func probeDisk(string) (string, doctor.Disk) { return "", doctor.Disk{} }

func probeFronts(string) doctor.Fronts { return doctor.Fronts{} }

func probeClock() doctor.Clock { return doctor.Clock{} }
