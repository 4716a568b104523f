// Package schedule tells when something that comes again and again is due, and which times were missed. It has no clock and
// no state; engine/trigger calls it.
package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"lashd/rpc/protocol"
)

const (
	// Grace is how late the newest time may be that was not missed.
	Grace = time.Minute
	// MaxMissed is how many missed times are made up for at most; of more, the newest.
	MaxMissed = 100
	// least is the least time between two that are due: none of the fields of a schedule is finer.
	least = time.Minute
)

// Schedule is a schedule in its time zone, with what becomes of times that are missed. It never changes.
type Schedule struct {
	times  cron.Schedule
	zone   *time.Location
	missed protocol.MissedTicks
}

var (
	parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

	errZone  = errors.New("must not name a time zone; timeZone does")
	errOften = errors.New("must not be due more often than every minute")
	errNever = errors.New("is never due")
)

// FieldError tells which field of a source is wrong.
type FieldError struct {
	Field string // schedule, timeZone or missed
	Err   error
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

func (e *FieldError) Unwrap() error { return e.Err }

// Parse makes a Schedule. It fails with a FieldError.
func Parse(src protocol.CronSource, now time.Time) (Schedule, error) {
	s := Schedule{missed: src.Missed}
	switch src.Missed {
	case protocol.MissedSkip, protocol.MissedRunOnce, protocol.MissedRunAll:
	default:
		return s, &FieldError{"missed", fmt.Errorf("must be skip, runOnce or runAll, not %.40q", src.Missed)}
	}
	var err error
	if s.zone, err = time.LoadLocation(cmp.Or(src.TimeZone, "Local")); err != nil {
		return s, &FieldError{"timeZone", fmt.Errorf("%.100q is not the name of a time zone, such as Europe/Zurich", src.TimeZone)}
	}
	if s.times, err = parse(src.Schedule); err != nil {
		return s, &FieldError{"schedule", err}
	}
	if s.Next(now).IsZero() {
		return s, &FieldError{"schedule", errNever}
	}
	return s, nil
}

func parse(text string) (cron.Schedule, error) {
	if strings.Contains(text, "TZ=") {
		return nil, errZone
	}
	times, err := parser.Parse(withSunday(text))
	if err != nil {
		return nil, fmt.Errorf("%.100q is no schedule: %.200s", text, err.Error())
	}
	constant, ok := times.(cron.ConstantDelaySchedule)
	switch {
	case ok && constant.Delay < least:
		return nil, errOften
	case ok:
		return every(constant.Delay), nil
	}
	return times, nil
}

// withSunday writes the day 7 of the week, which is Sunday in cron, as the parser knows it.
func withSunday(text string) string {
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return text
	}
	days := strings.Split(fields[4], ",")
	for i, span := range days {
		days[i] = upToSunday(span)
	}
	fields[4] = strings.Join(days, ",")
	return strings.Join(fields, " ")
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// upToSunday writes out the days of a span that ends with 7, and leaves any other as it is.
func upToSunday(span string) string {
	ends, steps, hasSteps := strings.Cut(span, "/")
	from, to, isRange := strings.Cut(ends, "-")
	if !isRange {
		to = from
	}
	first, err := strconv.Atoi(from)
	if err != nil {
		first = slices.Index(weekdays, strings.ToLower(from))
	}
	step := 1
	if hasSteps {
		step, _ = strconv.Atoi(steps) // 0 if it is no number
	}
	if to != "7" || first < 0 || first > 7 || step < 1 {
		return span // all right, or for the parser to complain of
	}
	var days []string
	for day := first; day <= 7; day += min(step, 7) {
		days = append(days, strconv.Itoa(day%7))
	}
	return strings.Join(days, ",")
}

// every is due at the multiples of a span since 1970, so that its times are the same whoever asks, and when.
type every time.Duration

// Next implements cron.Schedule.
func (d every) Next(after time.Time) time.Time {
	return time.Unix(0, (after.UnixNano()/int64(d)+1)*int64(d)).In(after.Location())
}

// Next is the first time after another; zero if there is none within five years.
func (s Schedule) Next(after time.Time) time.Time {
	next := s.times.Next(after.In(s.zone))
	if !next.IsZero() && !next.After(after) {
		return time.Time{} // else whoever asks for the next one asks for ever
	}
	return next
}

// Tick is a time that is due.
type Tick struct {
	At      time.Time
	Late    bool // it was missed
	LeftOut bool // missed times before it are not made up for, as there are too many
}

// Due gives what is to be done of all that was due after one time and up to another, and the newest of them: zero if there
// was none.
func (s Schedule) Due(after, now time.Time) (due []Tick, newest time.Time) {
	all, more := s.between(after, now, MaxMissed+1)
	if len(all) == 0 {
		return nil, time.Time{}
	}
	newest = all[len(all)-1]
	inTime := now.Sub(newest) < Grace
	switch {
	case s.missed == protocol.MissedRunOnce:
		return []Tick{{At: newest, Late: !inTime}}, newest
	case inTime:
		due = append(due, Tick{At: newest})
		all = all[:len(all)-1]
	}
	if s.missed == protocol.MissedSkip {
		return due, newest
	}
	return append(missed(all, more), due...), newest
}

// missed are the times that are made up for.
func missed(all []time.Time, more bool) (ticks []Tick) {
	if n := len(all); n > MaxMissed {
		all, more = all[n-MaxMissed:], true
	}
	for _, at := range all {
		ticks = append(ticks, Tick{At: at, Late: true})
	}
	if len(ticks) > 0 {
		ticks[0].LeftOut = more
	}
	return ticks
}

// between are the newest times after one and up to another, and whether there are more. It looks back from the later one, ever
// farther: a daemon that was away for years does not count the minutes of them.
func (s Schedule) between(after, now time.Time, limit int) (times []time.Time, more bool) {
	for span := Grace; ; span *= 2 {
		from := now.Add(-span)
		whole := !from.After(after) || span > 1<<62
		if whole {
			from = after
		}
		times = times[:0]
		for at := s.Next(from); !at.IsZero() && !at.After(now); at = s.Next(at) {
			times = append(times, at)
		}
		if n := len(times); n > limit {
			return times[n-limit:], true
		}
		if whole {
			return times, false
		}
	}
}
