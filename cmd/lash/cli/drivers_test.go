package cli

import (
	"strings"
	"testing"

	"lashd/cmd/internal/console"
	"lashd/rpc/protocol"
)

func TestDrivers(t *testing.T) {
	t.Run("issue/19 an unknown driver is an error that lists the known ones, and creates no session", func(t *testing.T) {
		p := newPlace(t)
		p.want(1, "", "lash: unknown driver \"rml\"; did you mean \"rlm\"? (known drivers: rlm, standard)\n", "run", "--driver", "rml", "hi")
		p.want(1, "", "unknown driver \"code\" (known drivers: rlm, standard)", "call", "session/new", `{"cwd":"/","driver":"code"}`)
		p.want(0, "[]", "", "session", "list", "--json")
	})

	t.Run("issue/19 a session keeps its driver", func(t *testing.T) {
		p := newPlace(t)
		id := p.session()
		p.want(2, "", "a session keeps its driver", "run", "--session", id, "--driver", "rlm", "hi")
		p.want(2, "", "a session keeps its driver", "chat", id, "--driver", "rlm")
		p.want(2, "", "a session keeps its driver", "chat", "-c", "--driver", "rlm")
	})

	t.Run("issue/19 session show tells the driver, and session list does if one is not the standard driver", func(t *testing.T) {
		p := newPlace(t)
		p.session()
		if r := p.want(0, "MODEL", "", "session", "list"); strings.Contains(r.out, "DRIVER") {
			t.Errorf("with standard sessions only, the list has the column DRIVER: %s", r.out)
		}
		p.want(0, "driver     standard\n", "", "session", "show")
		p.want(0, `"driver":"rlm"`, "", "call", "session/new", `{"sessionId":"ses_rlm","cwd":"`+p.work+`","driver":"rlm"}`)
		lines := strings.Split(p.run("session", "list").out, "\n")
		at := strings.Index(lines[0], "DRIVER")
		if at < 0 || !strings.HasPrefix(lines[1][at:], "rlm ") || !strings.HasPrefix(lines[2][at:], "standard ") {
			t.Errorf("the list is %q, want the drivers rlm and standard below DRIVER", lines)
		}
		p.want(0, "driver     rlm\n", "", "session", "show", "ses_rlm")
	})

	t.Run("issue/19 the status lists the drivers with a sentence each, and says which one is the default", func(t *testing.T) {
		p := newPlace(t)
		p.write("config.toml", "script = \"script.json\"\ndriver = \"rlm\"\n")
		p.want(0, `"drivers":[{"name":"rlm","title":"Code cells","about":"The model writes small programs that call the tools, and reads what they print.","default":true},`+
			`{"name":"standard","title":"Tool calls","about":"The model calls one tool or several at once, and reads each result."}]`, "", "call", "server/status")
	})

	t.Run("issue/19 a config.toml with an unknown driver is reported at its line, and the daemon does not start", func(t *testing.T) {
		p := newPlace(t)
		p.write("config.toml", "script = \"script.json\"\n\ndriver = \"rml\"\n")
		p.want(1, `line 3: driver is "rml"; it must be rlm or standard; did you mean rlm?`, "", "config")
		p.want(console.ExitNoDaemon, "", `line 3: driver is "rml"; it must be rlm or standard; did you mean rlm?`, "run", "hi")
	})
}

func TestDriverColumn(t *testing.T) {
	t.Run("issue/19 the rows of sessions have the same length as the header", func(t *testing.T) {
		for _, driver := range []string{"standard", "rlm"} {
			rows := listRows([]protocol.Session{{Config: protocol.Config{Driver: driver}}})
			if len(rows) != 2 || len(rows[0]) != len(rows[1]) {
				t.Errorf("with the driver %s: %q", driver, rows)
			}
		}
	})
}
