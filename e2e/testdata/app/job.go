package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// job writes down that it runs, takes its time and ends.
//
//	DATA      a folder with a journal of runs, optional
//	TAKES     milliseconds
//	CODE      its exit status
func job() {
	if dir := os.Getenv("DATA"); dir != "" {
		d := &data{journal: dir + "/journal"}
		if err := d.say("run"); err != nil {
			exit(err)
		}
	}
	fmt.Println("job", os.Getenv("VERSION"), "runs")
	time.Sleep(millis("TAKES"))
	code, _ := strconv.Atoi(os.Getenv("CODE"))
	os.Exit(code)
}
