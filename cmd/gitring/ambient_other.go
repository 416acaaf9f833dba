//go:build !linux

package main

// dumpNothing has nothing to do here.
func dumpNothing() error { return nil }

// keepCapabilities has nothing to do here.
func keepCapabilities() error { return nil }
