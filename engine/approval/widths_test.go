package approval_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lashd/engine/approval"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// subjects is a provider whose calls act on the given subjects.
type subjects struct {
	tools
	all []tool.Subject
}

func (s subjects) Subjects(string, json.RawMessage) []tool.Subject { return s.all }

func (s subjects) Tools() []tool.Tool { return s.tools }

func (s subjects) Execute(ctx context.Context, i tool.Invocation) (tool.Result, error) {
	return s.tools.Execute(ctx, i)
}

// calling returns a call of a tool that ships with lashd, in a session that asks about everything that leaves its sandbox.
func calling(t testing.TB, name string, kind protocol.ToolKind, about ...tool.Subject) *approval.Request {
	t.Helper()
	m := protocol.ToolManifest{Name: name, Kind: kind}
	r := tool.NewRegistry(nil, nil, protocol.ToolState{})
	if err := r.Upsert("p", subjects{tools{{Manifest: m, Contract: protocol.ToolContract{Replay: protocol.ReplayNever}}}, about}); err != nil {
		t.Fatal(err)
	}
	p := policy("")
	p.Approval.Sandbox = protocol.SandboxWorkspace
	return &approval.Request{
		Call: approval.SubjectsOf("/w", r.Same(m), []byte(`{}`)), Kind: kind, Ships: true, Policies: []approval.Policy{{Policy: p, Own: true}},
		Programs: tool.ProgramsOutside,
	}
}

// offered returns the widths of a call.
func offered(q *approval.Request) (texts, rules []string) {
	for _, w := range q.Widths(q.Judge(approval.Answers{})) {
		texts, rules = append(texts, w.Text), append(rules, w.Rule.String())
	}
	return texts, rules
}

func TestWidthsOfCommands(t *testing.T) {
	for line, want := range map[string]string{
		"go test ./...":                       "go test",
		"go test ./... && go test -race ./x":  "go test",
		"go test ./... 2>&1":                  "go test",
		"go mod tidy":                         "go mod tidy",
		"npm run build -- --fast":             "npm run build",
		"npm run test:unit":                   "npm run test:unit",
		"git commit -m 'x; rm -rf /'":         "git commit",
		"cargo test":                          "cargo test",
		"pytest -q tests":                     "pytest",
		"go test ./... && curl x":             "",
		"go test ./... > out":                 "",
		"go test $X":                          "",
		"X=1 go test":                         "",
		"go test -exec 'rm -rf' ./...":        "",
		"go test --exec=./evil ./...":         "",
		"go vet -vettool=./evil ./...":        "",
		"go build -ldflags=-extld=./evil":     "",
		"go run ./cmd":                        "",
		"go":                                  "",
		"git push":                            "",
		"git -c core.pager=evil log":          "",
		"git fetch --upload-pack=evil ../x":   "",
		"git fetch --upload-p=evil ../x":      "",
		"git rebase -x evil":                  "",
		"git log --output=/home/u/.bashrc":    "",
		"npm run build --script-shell=./evil": "",
		"npm install left-pad":                "",
		"npm run 'a b'":                       "",
		"python -c 'x'":                       "",
		"python3 script.py":                   "",
		"sh -c 'go test'":                     "",
		"sudo go test":                        "",
		"env go test":                         "",
		"xargs go test":                       "",
		"find . -exec go test":                "",
		"make test":                           "",
		"npx jest":                            "",
		"./go test":                           "",
		"cat x":                               "",
		"rm -rf build":                        "",
		"cd sub && go test ./...":             "",
	} {
		t.Run("issue/20-3 the width of an answer to "+line, func(t *testing.T) {
			texts, rules := offered(calling(t, "shell", protocol.ToolKindExecute, tool.Subject{Command: line}))
			switch {
			case want == "" && len(rules) > 0:
				t.Errorf("%q", rules)
			case want != "" && (!slices.Equal(rules, []string{"allow command " + want}) || !slices.Equal(texts, []string{"commands that begin with " + want + ", also outside the sandbox"})):
				t.Errorf("%q: %q, want %q", rules, texts, want)
			}
		})
	}
}

func TestWidthsOfOtherCalls(t *testing.T) {
	for _, c := range []struct {
		row   string
		about []tool.Subject
		want  []string // rule, sentence
	}{
		{"a file", []tool.Subject{{Path: "docs/a.md"}}, []string{
			"allow path docs/a.md", "reading and changing the file docs/a.md with the file tools", "allow path docs", "reading and changing all files in docs with the file tools",
		}},
		{"a file with characters of patterns", []tool.Subject{{Path: "app/[id]/x.ts"}}, []string{
			`allow path app/\[id]/x.ts`, "reading and changing the file app/[id]/x.ts with the file tools", `allow path app/\[id]`, "reading and changing all files in app/[id] with the file tools",
		}},
		{"a file of the workspace itself", []tool.Subject{{Path: "a"}}, []string{
			"allow path a", "reading and changing the file a with the file tools", "allow path .", "reading and changing all files of the workspace with the file tools",
		}},
		{"a file outside the workspace", []tool.Subject{{Path: "/x/a"}}, []string{"allow path /x/a", "reading and changing the file /x/a with the file tools"}},
		{"files of one directory", []tool.Subject{{Path: "d/a"}, {Path: "d/b"}}, []string{"allow path d", "reading and changing all files in d with the file tools"}},
		{"files of two directories", []tool.Subject{{Path: "d/a"}, {Path: "e/b"}}, nil},
		{"a protected file", []tool.Subject{{Path: ".envrc"}}, nil},
		{"a skill, whose scripts run later", []tool.Subject{{Path: ".agents/skills/x/SKILL.md"}}, nil},
		{"a submodule, whose address git uses", []tool.Subject{{Path: ".gitmodules"}}, nil},
	} {
		t.Run("issue/20-3 the widths of an answer about "+c.row, func(t *testing.T) {
			q := calling(t, "write", protocol.ToolKindEdit, c.about...)
			q.Policies[0].Approval.Mode, q.Programs = asks, tool.ProgramsUnknown
			var got []string
			for _, w := range q.Widths(q.Judge(approval.Answers{})) {
				got = append(got, w.Rule.String(), w.Text)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	hosts := func(names ...string) (all []tool.Subject) {
		all = []tool.Subject{{Command: "npm ci"}}
		for _, name := range names {
			all = append(all, tool.Subject{Host: name})
		}
		return all
	}
	for _, c := range []struct {
		row   string
		hosts []string
		want  []string
	}{
		{"a host", []string{"registry.npmjs.org"}, []string{
			"allow host registry.npmjs.org", "connections to registry.npmjs.org, on ports 80 and 443", "allow host *.npmjs.org", "connections to every host below npmjs.org, on ports 80 and 443",
		}},
		{"a host of a shared domain", []string{"me.github.io"}, []string{"allow host me.github.io", "connections to me.github.io, on ports 80 and 443"}},
		{"a host below a shared domain", []string{"a.co.uk"}, []string{"allow host a.co.uk", "connections to a.co.uk, on ports 80 and 443"}},
		{"a port", []string{"a.example.com:8080"}, []string{
			"allow host a.example.com:8080", "connections to a.example.com:8080", "allow host *.example.com:8080", "connections to every host below example.com:8080",
		}},
		{"an address", []string{"192.0.2.1:80"}, []string{"allow host 192.0.2.1:80", "connections to 192.0.2.1:80"}},
		{"hosts of one domain", []string{"a.example.com", "b.example.com"}, []string{"allow host *.example.com", "connections to every host below example.com, on ports 80 and 443"}},
		{"hosts of two domains", []string{"a.example.com", "b.example.org"}, nil},
		{"a text that is no host", []string{"http://x"}, nil},
	} {
		t.Run("issue/20-3 the widths of an answer about "+c.row, func(t *testing.T) {
			q := calling(t, "shell", protocol.ToolKindExecute, hosts(c.hosts...)...)
			q.Programs = tool.ProgramsInside
			var got []string
			for _, w := range q.Widths(q.Judge(approval.Answers{})) {
				got = append(got, w.Rule.String(), w.Text)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	t.Run("issue/20-3 the width of a tool that does not ship with lashd is all of its calls", func(t *testing.T) {
		q := calling(t, "mcp__x__y", "", tool.Subject{Path: "a"})
		q.Ships = false
		texts, rules := offered(q)
		if !slices.Equal(rules, []string{"allow tool mcp__x__y"}) || texts[0] != "all calls of the tool mcp__x__y, with any arguments" {
			t.Errorf("%q: %q", rules, texts)
		}
	})
	t.Run("issue/20-3 no width is offered where a rule asks", func(t *testing.T) {
		q := calling(t, "shell", protocol.ToolKindExecute, tool.Subject{Command: "go test"})
		q.Policies[0].Approval.Rules = []protocol.ApprovalRule{{Command: "go", Action: asks}}
		if texts, _ := offered(q); len(texts) > 0 {
			t.Errorf("%q", texts)
		}
	})
}

// TestWidthsCoverNoMore compares a width with the commands of random lines, which the test builds itself and so knows without a parser.
func TestWidthsCoverNoMore(t *testing.T) {
	words := []string{"go", "test", "vet", "-exec", "./...", "git", "commit", "fetch", "--upload-pack=x", "npm", "run", "build", "--", "sudo", "env", "sh", "-c", "'go test'", "rm", "-rf", "*", "--script-shell", "A=b"}
	command := rapid.SliceOfN(rapid.SampledFrom(words), 1, 5)
	begins := rapid.SampledFrom([][]string{{"go", "test"}, {"git", "commit"}, {"git", "fetch"}, {"npm", "run", "build"}})
	joins := rapid.SampledFrom([]string{" && ", "; ", " | ", " || ", " & ", "\n"})
	ends := rapid.SampledFrom([]string{"", "", "", " > out", " 2>/dev/null", " $(rm x)", " `rm x`", " < in", " &"})
	covered, offers := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		q := calling(testing.TB(nopTB{}), "shell", protocol.ToolKindExecute, tool.Subject{Command: strings.Join(append(slices.Clone(begins.Draw(t, "begin")), command.Draw(t, "rest")...), " ")})
		for _, w := range q.Widths(q.Judge(approval.Answers{})) {
			offers++
			var commands [][]string
			var line strings.Builder
			for i := range rapid.IntRange(1, 3).Draw(t, "commands") {
				next := command.Draw(t, "command")
				if rapid.IntRange(0, 3).Draw(t, "fits") > 0 {
					next = append(strings.Fields(w.Rule.Command), next...)
				}
				if i > 0 {
					line.WriteString(joins.Draw(t, "join"))
				}
				line.WriteString(strings.Join(next, " "))
				commands = append(commands, next)
			}
			end := ends.Draw(t, "end")
			other := calling(testing.TB(nopTB{}), "shell", protocol.ToolKindExecute, tool.Subject{Command: line.String() + end})
			other.Policies[0].Approval.Rules = []protocol.ApprovalRule{*w.Rule}
			if other.Judge(approval.Answers{}).Mode != allow {
				continue
			}
			covered++
			if end != "" && end != " 2>/dev/null" && end != " &" {
				t.Fatalf("%s covers %q", w.Text, line.String()+end)
			}
			begin := strings.Fields(w.Rule.Command)
			for _, c := range commands {
				if !strings.HasPrefix(strings.Join(c, " ")+" ", strings.Join(begin, " ")+" ") {
					t.Fatalf("%s covers %q", w.Text, line.String())
				}
				for _, word := range c[len(begin):] {
					if word == "--" {
						break
					}
					if c[0] == "go" && word == "-exec" || c[0] == "git" && word == "--upload-pack=x" || c[0] == "npm" && word == "--script-shell" {
						t.Fatalf("%s covers %q, which runs another program", w.Text, line.String())
					}
				}
			}
		}
	})
	if offers == 0 || covered == 0 {
		t.Errorf("%d widths covered %d lines", offers, covered)
	}
}

// nopTB is a testing.TB for calling within rapid, which cannot fail there.
type nopTB struct{ testing.TB }

func (nopTB) Helper() {}
