// Package schedule computes when a cron schedule is due and which of its times were missed.
// It has no clock and no state; engine/trigger passes the times in.
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

	"lashd/internal/duration"
	"lashd/rpc/protocol"
)

const (
	// Grace is how late a time may be handled and still count as on time.
	Grace = time.Minute
	// MaxMissed is the number of missed times that are made up for, the newest ones.
	MaxMissed = 100
	// least is the shortest time between two due times. Fields of a schedule are not finer
	// than a minute.
	least = time.Minute
)

// Schedule is a cron schedule in its time zone, with the rule for missed times. It is
// immutable.
type Schedule struct {
	times  cron.Schedule
	zone   *time.Location
	missed protocol.MissedTicks
}

var (
	parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

	errZone  = errors.New("must not contain a time zone; set timeZone instead")
	errOften = errors.New("must not be due more often than every minute")
	errNever = errors.New("is never due")
)

// FieldError is the error of Parse. It says which field of the source is invalid.
type FieldError struct {
	// Field is schedule, timeZone or missed.
	Field string
	Err   error
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

func (e *FieldError) Unwrap() error { return e.Err }

// Parse validates a source and returns its schedule. The error is a *FieldError. now
// decides whether the schedule is ever due.
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

// parse parses the text of a schedule: five cron fields, or a descriptor such as @daily or
// @every 90m.
func parse(text string) (cron.Schedule, error) {
	if strings.Contains(text, "TZ=") {
		return nil, errZone
	}
	spelled := text
	if pause, ok := strings.CutPrefix(text, "@every "); ok {
		d, err := duration.Parse(pause)
		if err != nil {
			return nil, fmt.Errorf("%.100q is not a valid schedule: %w", text, err)
		}
		spelled = "@every " + d.String()
	}
	times, err := parser.Parse(withSunday(spelled))
	if err != nil {
		return nil, fmt.Errorf("%.100q is not a valid schedule (minute, hour, day, month, weekday, such as 0 9 * * 1-5, or @daily, or @every 90m): %.200s", text, err.Error())
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

// withSunday rewrites day 7 of the week, which cron accepts as Sunday, for the parser,
// which knows only 0.
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

// upToSunday lists the days of a range that ends with 7. It returns any other range
// unchanged.
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
		step, _ = strconv.Atoi(steps) // 0 if it is not a number
	}
	if to != "7" || first < 0 || first > 7 || step < 1 {
		return span // valid, or left for the parser to reject
	}
	var days []string
	for day := first; day <= 7; day += min(step, 7) {
		days = append(days, strconv.Itoa(day%7))
	}
	return strings.Join(days, ",")
}

// every is due at multiples of a duration since 1970. The times do not depend on when the
// daemon started.
type every time.Duration

// Next implements cron.Schedule.
func (d every) Next(after time.Time) time.Time {
	return time.Unix(0, (after.UnixNano()/int64(d)+1)*int64(d)).In(after.Location())
}

// Next returns the first due time after another, or zero if there is none within five
// years.
func (s Schedule) Next(after time.Time) time.Time {
	next := s.times.Next(after.In(s.zone))
	if !next.IsZero() && !next.After(after) {
		return time.Time{} // callers would loop forever on a time that does not advance
	}
	return next
}

// Tick is a due time.
type Tick struct {
	At time.Time
	// Late means that the time was missed, and is handled late.
	Late bool
	// LeftOut means that there were more missed times before this one than MaxMissed. They
	// are skipped.
	LeftOut bool
}

// Due returns the ticks to handle for the interval (after, now], as the rule for missed
// times says. newest is the newest due time in it, or zero if there is none; pass it as
// after in the next call.
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

// missed returns the ticks for missed times.
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

// between returns the newest due times in (after, now], at most limit, and whether there
// are more. It searches backwards in growing spans, so that years of downtime do not cost a
// step for each minute.
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
