package bench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// rounds is how often TestTasks runs each task with each driver. With more than one round it prints the figures.
var rounds = flag.Int("rounds", 1, "rounds of TestTasks; with more than one it prints its figures")

// result is what a scripted model reads of one of its calls, or of its code cell.
type result struct{ name, args, text string }

// model is a scripted model for one task. It returns its next reply from the number of its earlier replies and the
// results of the newest one.
type model func(step int, got []result) fakemodel.Step

// task is real work in a directory of its own, done with tool calls and with code cells.
type task struct {
	name   string
	prompt string
	files  func(put func(path, text string))
	calls  model // for the driver standard
	cells  model // for the driver rlm
	// check returns what is wrong with the answer and the files, or "".
	check func(answer string, read func(path string) string) string
}

// figures of one task and one driver.
type figures struct {
	requests, tokens, bytes int // model calls, tokens of their requests as lashd estimates them, bytes of their bodies
	written                 int // tokens of the model's replies, estimated in the same way
	took                    []time.Duration
}

// TestTasks lets both drivers do the same tasks and checks the results. The models are scripted as competent models would act: one
// batch of calls a step, or one cell a step.
func TestTasks(t *testing.T) {
	t.Run("runtime/R02 both drivers do the same tasks, and their results are right", func(t *testing.T) {
		drivers := []string{"standard", "rlm"}
		sides := map[string]*doer{}
		for _, driver := range drivers {
			sides[driver] = newDoer(t, driver)
		}
		for _, task := range tasks() {
			got := map[string]*figures{}
			for range *rounds {
				for _, driver := range drivers {
					if got[driver] == nil {
						got[driver] = &figures{}
					}
					sides[driver].do(t, task, got[driver])
				}
			}
			if *rounds > 1 {
				fmt.Println(row(task.name, got["standard"], got["rlm"]))
			}
		}
	})
}

// row is a line of the table in docs/performance.md.
func row(name string, a, b *figures) string {
	ms := func(f *figures) float64 { return median(f.took).Seconds() * 1e3 }
	return fmt.Sprintf("| %s | %d, %d | %d, %d | %d, %d | %d, %d | %.0f, %.0f |", name, a.requests, b.requests, a.tokens, b.tokens, a.written, b.written,
		a.bytes/1000, b.bytes/1000, ms(a), ms(b))
}

// doer is a daemon whose sessions use one driver, with its model server.
type doer struct {
	driver string
	peer   *Peer
	model  *fakemodel.Server
}

func newDoer(t testing.TB, driver string) *doer {
	t.Helper()
	server, cfg := setup(t, targets[1])
	config := filepath.Join(cfg.Dir, "data", "config.toml")
	text, err := os.ReadFile(config)
	if err == nil {
		err = os.WriteFile(config, append(text, "driver = \""+driver+"\"\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, cfg)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return &doer{driver, p, server}
}

// do does a task in a new session and adds to its figures.
func (d *doer) do(t *testing.T, task task, f *figures) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	task.files(func(path, text string) {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	next := map[string]model{"standard": task.calls, "rlm": task.cells}[d.driver]
	d.model.Reset()
	d.model.Think(func(c fakemodel.Chat) fakemodel.Step { return next(newest(c.Messages)) })
	sid, err := d.peer.CreateIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	turn := run(t, d.peer, sid, task.prompt)
	wrong := task.check(turn.Answer, func(path string) string {
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	})
	if wrong != "" {
		t.Errorf("%s with the driver %s: %s; the answer is %q", task.name, d.driver, wrong, turn.Answer)
	}
	f.took = append(f.took, turn.Total)
	f.count(d.model.Requests(), turn.Answer)
}

// newest returns the number of replies in a conversation, and the results of the newest one.
func newest(all []fakemodel.Message) (step int, got []result) {
	asked := map[string]fakemodel.SentCall{}
	for _, m := range all {
		switch m.Role {
		case "assistant":
			step, got = step+1, nil
			for _, c := range m.ToolCalls {
				asked[c.ID] = c
			}
		case "tool":
			c := asked[m.ToolCallID].Function
			got = append(got, result{c.Name, c.Arguments, string(m.Content)})
		case "user":
			got = append(got, result{text: string(m.Content)})
		}
	}
	return step, got
}

// count replaces the counts by those of a run. What the model wrote is in the requests that follow, and in its answer.
func (f *figures) count(requests []fakemodel.Request, answer string) {
	*f = figures{took: f.took, requests: len(requests), written: estimate(answer)}
	for i, r := range requests {
		f.bytes += r.Size
		for _, tool := range r.Chat.Tools {
			f.tokens += estimate(tool.Function.Description + string(tool.Function.Parameters))
		}
		for _, m := range r.Chat.Messages {
			n := estimate(string(m.Content))
			for _, c := range m.ToolCalls {
				n += estimate(c.Function.Name + c.Function.Arguments)
			}
			f.tokens += n
			if i == len(requests)-1 && m.Role == "assistant" {
				f.written += n
			}
		}
	}
}

// estimate returns how many tokens lashd expects a text to have.
func estimate(text string) int { return int((&protocol.Part{Text: text}).EstimatedTokens()) }

// use is a reply with tool calls, each a name and arguments as JSON.
func use(calls ...[2]string) fakemodel.Step {
	var all []fakemodel.Call
	for _, c := range calls {
		all = append(all, fakemodel.Call{Name: c[0], Args: c[1]})
	}
	return fakemodel.Use(all...)
}

// call is a tool call. The arguments are formatted as JSON.
func call(name, format string, args ...any) [2]string {
	quoted := make([]any, len(args))
	for i, a := range args {
		quoted[i] = a
		if s, ok := a.(string); ok {
			quoted[i] = strconv.Quote(s)
		}
	}
	return [2]string{name, fmt.Sprintf(format, quoted...)}
}

// cell is a reply with a code cell.
func cell(prose, source string) fakemodel.Step {
	return fakemodel.Say(prose + "\n\n<starlark>\n" + strings.TrimSpace(source) + "\n</starlark>\n")
}

// oneCell is a model that works with one cell and answers with what it printed.
func oneCell(prose, source string) model {
	return func(step int, got []result) fakemodel.Step {
		if step == 0 {
			return cell(prose, source)
		}
		return fakemodel.Say(strings.TrimSpace(got[0].text))
	}
}
