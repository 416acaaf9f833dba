package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// poll judges how often a source is looked at.
func (k *checker) poll(at, value string) {
	if err := checkPoll(value); err != nil {
		k.wrong(at, "60s, or a cron expression in UTC such as \"*/5 * * * *\"", "poll: %v", err)
	}
}

func checkPoll(value string) error {
	if d, err := time.ParseDuration(value); err == nil {
		if d < time.Second {
			return fmt.Errorf("%s is less than 1s", value)
		}
		return nil
	}
	// The parser panics on some time zones; a poll has none but UTC.
	if strings.Contains(value, "TZ=") {
		return fmt.Errorf("%q names a time zone; times are in UTC", value)
	}
	named := strings.HasPrefix(value, "@") && !strings.HasPrefix(value, "@every")
	if !named && len(strings.Fields(value)) != 5 {
		return fmt.Errorf("%q is neither a duration with its unit nor a cron expression of five fields", value)
	}
	schedule, err := cron.ParseStandard(value)
	if err != nil {
		return fmt.Errorf("%q: %w", value, err)
	}
	if schedule.Next(time.Unix(0, 0).UTC()).IsZero() {
		return fmt.Errorf("%q never comes", value)
	}
	return nil
}
