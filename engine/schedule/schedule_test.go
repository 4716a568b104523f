package schedule_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/engine/schedule"
	"lashd/rpc/protocol"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func parse(t *testing.T, text, zone string, missed protocol.MissedTicks) schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(protocol.CronSource{Schedule: text, TimeZone: zone, Missed: missed}, at(t, "2026-11-21T12:00:00Z"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		src         protocol.CronSource
		field, text string
	}{
		{protocol.CronSource{Schedule: "* * * * *"}, "missed", `must be skip, runOnce or runAll, not ""`},
		{protocol.CronSource{Schedule: "* * * * *", Missed: "runTwice"}, "missed", `not "runTwice"`},
		{protocol.CronSource{Schedule: "* * * *", Missed: "skip"}, "schedule", "is not a valid schedule"},
		{protocol.CronSource{Schedule: "61 * * * *", Missed: "skip"}, "schedule", "is not a valid schedule"},
		{protocol.CronSource{Schedule: "0 0 * * 8", Missed: "skip"}, "schedule", "is not a valid schedule"},
		{protocol.CronSource{Schedule: "0 0 * * 8-7", Missed: "skip"}, "schedule", "is not a valid schedule"},
		{protocol.CronSource{Schedule: "0 0 * * 1-7/0", Missed: "skip"}, "schedule", "is not a valid schedule"},
		{protocol.CronSource{Schedule: "0 0 7 7 x-7", Missed: "skip"}, "schedule", "is not a valid schedule"},
		{protocol.CronSource{Schedule: "", Missed: "skip"}, "schedule", "is not a valid schedule"},
		{protocol.CronSource{Schedule: "TZ=0", Missed: "skip"}, "schedule", "set timeZone instead"},
		{protocol.CronSource{Schedule: "CRON_TZ=UTC * * * * *", Missed: "skip"}, "schedule", "set timeZone instead"},
		{protocol.CronSource{Schedule: "@every 59s", Missed: "skip"}, "schedule", "more often than every minute"},
		{protocol.CronSource{Schedule: "@every -5m", Missed: "skip"}, "schedule", "more often than every minute"},
		{protocol.CronSource{Schedule: "0 0 30 2 *", Missed: "skip"}, "schedule", "is never due"},
		{protocol.CronSource{Schedule: "@daily", TimeZone: "Europe/Zurch", Missed: "skip"}, "timeZone", "is not the name of a time zone"},
		{protocol.CronSource{Schedule: "@daily", TimeZone: "../../etc/passwd", Missed: "skip"}, "timeZone", "is not the name of a time zone"},
	} {
		t.Run("runtime/B14 "+c.field+" "+c.src.Schedule, func(t *testing.T) {
			_, err := schedule.Parse(c.src, at(t, "2026-11-21T12:00:00Z"))
			wrong, ok := errors.AsType[*schedule.FieldError](err)
			if !ok || wrong.Field != c.field || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%+v: %v, want %s: %s", c.src, err, c.field, c.text)
			}
		})
	}
}

func TestNext(t *testing.T) {
	for _, c := range []struct{ text, zone, after, want string }{
		{"0 9 * * 1-5", "Europe/Zurich", "2026-11-20T08:00:00Z", "2026-11-23T08:00:00Z"}, // Friday at nine, Monday
		{"0 9 * * *", "Europe/Zurich", "2026-03-28T08:00:00Z", "2026-03-29T07:00:00Z"},   // summer time begins
		{"@hourly", "", "2026-11-21T12:00:00Z", "2026-11-21T13:00:00Z"},
		{"@every 90m", "", "2026-11-21T12:00:01Z", "2026-11-21T13:30:00Z"}, // from midnight 1970 on, independent of the start of the daemon
		{"@every 90m", "", "2026-11-21T13:29:59Z", "2026-11-21T13:30:00Z"},
	} {
		t.Run("runtime/B14 the next time of "+c.text+" after "+c.after, func(t *testing.T) {
			got := parse(t, c.text, c.zone, protocol.MissedSkip).Next(at(t, c.after))
			if !got.Equal(at(t, c.want)) {
				t.Errorf("next %s, want %s", got, c.want)
			}
		})
	}
}

func TestSevenIsSunday(t *testing.T) {
	for text, want := range map[string]string{ // for the week that starts on Monday, 2026-11-16
		"7": "22", "0": "22", "5,7": "20 22", "5-7": "20 21 22", "fri-7": "20 21 22", "1-7/3": "16 19 22", "0-7": "16 17 18 19 20 21 22", "7/2": "22", "7-7": "22",
		"2-7/9223372036854775807": "17",
	} {
		t.Run("runtime/B14 7 is Sunday in "+text, func(t *testing.T) {
			s, day := parse(t, "0 9 * * "+text, "UTC", protocol.MissedSkip), at(t, "2026-11-16T00:00:00Z")
			var got []string
			for day = s.Next(day); day.Day() < 23; day = s.Next(day) {
				got = append(got, day.Format("2"))
			}
			if days := strings.Join(got, " "); days != want {
				t.Errorf("days %s, want %s", days, want)
			}
		})
	}
}

// show returns ticks as minutes before noon. ! marks a missed one, + one before which others were skipped.
func show(ticks []schedule.Tick, noon time.Time) (all []string) {
	for _, k := range ticks {
		text := fmt.Sprint(int(noon.Sub(k.At).Minutes()))
		if k.Late {
			text += "!"
		}
		if k.LeftOut {
			text += "+"
		}
		all = append(all, text)
	}
	return all
}

func TestDue(t *testing.T) {
	for _, c := range []struct {
		name, text, after, now string
		missed                 protocol.MissedTicks
		want                   []string
	}{
		{"nothing", "@hourly", "11:00:00", "11:59:59", protocol.MissedRunAll, nil},
		{"in time", "@hourly", "11:00:00", "12:00:00", protocol.MissedSkip, []string{"0"}},
		{"a little late", "@hourly", "11:00:00", "12:00:59", protocol.MissedSkip, []string{"0"}},
		{"missed and skipped", "@hourly", "11:00:00", "12:01:00", protocol.MissedSkip, nil},
		{"missed and made up for once", "@hourly", "08:30:00", "12:01:00", protocol.MissedRunOnce, []string{"0!"}},
		{"missed and each made up for", "@hourly", "08:30:00", "12:01:00", protocol.MissedRunAll, []string{"180!", "120!", "60!", "0!"}},
		{"missed but for the last, skipped", "*/15 * * * *", "11:20:00", "12:00:10", protocol.MissedSkip, []string{"0"}},
		{"missed but for the last, once", "*/15 * * * *", "11:20:00", "12:00:10", protocol.MissedRunOnce, []string{"0"}},
		{"missed but for the last, all", "*/15 * * * *", "11:20:00", "12:00:10", protocol.MissedRunAll, []string{"30!", "15!", "0"}},
	} {
		t.Run("runtime/B14 "+c.name, func(t *testing.T) {
			noon := at(t, "2026-11-21T12:00:00Z")
			got, newest := parse(t, c.text, "UTC", c.missed).Due(at(t, "2026-11-21T"+c.after+"Z"), at(t, "2026-11-21T"+c.now+"Z"))
			if !slices.Equal(show(got, noon), c.want) || newest.IsZero() != (c.name == "nothing") || !newest.IsZero() && !newest.Equal(noon) {
				t.Errorf("due %v, newest %s; want %v", show(got, noon), newest, c.want)
			}
		})
	}
	t.Run("runtime/B14 only the newest of too many missed times are made up for, and the tick says so", func(t *testing.T) {
		noon := at(t, "2026-11-21T12:00:00Z")
		begin := time.Now()
		got, _ := parse(t, "* * * * *", "UTC", protocol.MissedRunAll).Due(noon.AddDate(-10, 0, 0), noon.Add(time.Second))
		if took := time.Since(begin); took > time.Second {
			t.Errorf("ten years took %s", took)
		}
		all := show(got, noon)
		if len(all) != 101 || all[0] != "100!+" || all[1] != "99!" || all[99] != "1!" || all[100] != "0" {
			t.Errorf("%d: %v", len(all), all)
		}
		exactly, _ := parse(t, "* * * * *", "UTC", protocol.MissedRunAll).Due(noon.Add(-101*time.Minute), noon.Add(time.Second))
		if all := show(exactly, noon); len(all) != 101 || all[0] != "100!" {
			t.Errorf("%d: %v", len(all), all)
		}
	})
}
