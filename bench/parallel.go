package main

import (
	"errors"
	"sync"
)

// parallel calls do for 0 to n-1, at most so many at once, and returns when all
// have ended.
func parallel(atOnce, n int, do func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
