// Package duration reads durations as people write them, such as 90s, 10m, 2h, 1d or 2w. Its function is safe for concurrent use.
package duration

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// long matches a number of days or weeks.
var long = regexp.MustCompile(`([0-9]+(?:\.[0-9]+)?)([dw])`)

// hours has the length of the units that the package time does not read.
var hours = map[string]float64{"d": 24, "w": 7 * 24}

// Parse reads a duration in the units of time.ParseDuration, in days of 24 hours (d) or in weeks (w). The error says what it accepts.
func Parse(text string) (time.Duration, error) {
	inHours := long.ReplaceAllStringFunc(text, func(part string) string {
		n, err := strconv.ParseFloat(part[:len(part)-1], 64)
		if err != nil {
			return part
		}
		return strconv.FormatFloat(n*hours[part[len(part)-1:]], 'f', -1, 64) + "h"
	})
	d, err := time.ParseDuration(inHours)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a duration; write it as 90s, 10m, 2h, 1d or 2w", text)
	}
	return d, nil
}
