//go:build !linux

package main

// keepCapabilities has nothing to do here.
func keepCapabilities() error { return nil }
