package layout_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/pluginloader/layout"
)

func TestPrompts(t *testing.T) {
	for name, c := range map[string]struct {
		kind     layout.Kind
		file, in string
		want     layout.Prompt
		unserved string
	}{
		"a skill": {layout.Skill, "skills/pdf/SKILL.md", "---\nname: pdf-forms\ndescription: >\n  Fill in\n  forms.\nallowed-tools: [Read, 'Bash(git add *)']\n---\n\n# Do\n",
			layout.Prompt{Kind: "skill", Name: "pdf-forms", Description: "Fill in forms.", Body: "# Do"}, "allowed-tools"},
		"a skill whose name is not valid has that of its directory": {layout.Skill, "skills/pdf/SKILL.md", "---\nname: PDF Forms\ndisable-model-invocation: true\nuser-invocable: false\nlicense: MIT\n---\nDo",
			layout.Prompt{Kind: "skill", Name: "pdf", Description: "Do", HideModel: true, HidePeople: true, Body: "Do"}, ""},
		"a description that is not YAML": {layout.Skill, "skills/a/SKILL.md", "---\r\nname: a\r\ndescription: Use when: it's <x>\r\n  and more: {\r\n---\r\nDo\r\n",
			layout.Prompt{Kind: "skill", Name: "a", Description: "Use when: it's <x> and more: {", Body: "Do"}, ""},
		"a command without a front matter": {layout.Command, "commands/git/sum.md", "# Sum up\n---\nx",
			layout.Prompt{Kind: "command", Name: "sum", Description: "Sum up", Body: "# Sum up\n---\nx"}, ""},
		"a hint that is a list in YAML": {layout.Command, "commands/r.md", "---\nargument-hint: [number]\narguments: from to\nmodel: x\n---",
			layout.Prompt{Kind: "command", Name: "r", Hint: "[number]", Arguments: []string{"from", "to"}}, "model"},
	} {
		t.Run(name, func(t *testing.T) {
			got, unserved, err := layout.ParsePrompt(c.kind, c.file, []byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			c.want.File = c.file
			if d := cmp.Diff(&c.want, got); d != "" {
				t.Error(d)
			}
			var fields []string
			for _, u := range unserved {
				fields = append(fields, u.Field)
			}
			if strings.Join(fields, " ") != c.unserved {
				t.Errorf("unserved: %q, want %q", fields, c.unserved)
			}
		})
	}
	for in, want := range map[string]string{
		"---\ndescription: [a\n b: {\n---\n": "",
		"\xff":                               "is not UTF-8 text",
		"---\nuser-invocable: maybe\n---\n":  "front matter that is not valid",
	} {
		if _, _, err := layout.ParsePrompt(layout.Skill, "skills/a/SKILL.md", []byte(in)); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: the error is %v", in, err)
		}
	}
	if _, _, err := layout.ParsePrompt(layout.Command, "commands/a b.md", nil); err == nil {
		t.Error("a name with a space was accepted")
	}
}

func TestAgents(t *testing.T) {
	got, unserved, err := layout.ParseAgent("agents/reviewer.md", []byte("---\nname: code-reviewer\ndescription: Use this agent to review. Examples: <example>user: \"x\"</example>\ntools: Read, Grep,Bash(git diff:*), WebSearch\ndisallowedTools:\n- Write\nmodel: sonnet\npermissionMode: plan\ncolor: red\n---\nYou review.\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := &layout.Agent{
		Name: "code-reviewer", Description: `Use this agent to review. Examples: <example>user: "x"</example>`, Tools: []string{"Read", "Grep", "Bash(git diff:*)", "WebSearch"},
		Without: []string{"Write"}, Model: "sonnet", File: "agents/reviewer.md", Body: "You review.",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	var fields []string
	for _, u := range unserved {
		fields = append(fields, u.Field)
	}
	if got := strings.Join(fields, ", "); got != "permissionMode, (git diff:*), WebSearch" {
		t.Errorf("part13/5 what has no effect in an agent is %q", got)
	}
}

func TestExpand(t *testing.T) {
	v := layout.Variables{Root: "/p", Dir: "/p/s", Project: "/w", Session: "ses_1"}
	for _, c := range []struct {
		kind                  layout.Kind
		names                 []string
		body, arguments, want string
	}{
		{layout.Command, nil, "fix $1 at $2: $ARGUMENTS $3.", `7 "very high"`, `fix 7 at very high: 7 "very high" .`},
		{layout.Command, nil, "fix $0, $1 and $ARGUMENTS[1]", "a b", "fix a, b and b"},
		{layout.Skill, nil, "fix $0", "a b", "fix a"},
		{layout.Skill, []string{"issue", "branch"}, "$issue on $branch, not $other", "5 main", "5 on main, not $other"},
		{layout.Command, nil, "fix", "this 'and' that", "fix\n\nARGUMENTS: this 'and' that"},
		{layout.Command, nil, `a \$1 \$ARGUMENTS $HOME ${HOME} $ARGUMENTSX`, "", `a $1 $ARGUMENTS $HOME ${HOME} $ARGUMENTSX`},
		{layout.Skill, nil, "${CLAUDE_PLUGIN_ROOT} ${CLAUDE_SKILL_DIR} ${CLAUDE_PROJECT_DIR} ${CLAUDE_SESSION_ID}", "", "/p /p/s /w ses_1"},
		{layout.Command, nil, "[$1]", "$ARGUMENTS", "[$ARGUMENTS]"},
		{layout.Command, nil, "$99999999999999999999", "a", ""},
	} {
		p := &layout.Prompt{Kind: c.kind, Body: c.body, Arguments: c.names}
		if got := p.Expand(c.arguments, v); got != c.want {
			t.Errorf("%q with %q is %q, want %q", c.body, c.arguments, got, c.want)
		}
	}
	p := &layout.Prompt{Kind: layout.Skill, Body: `awk '{print $1}' ${CLAUDE_SKILL_DIR} $ARGUMENTS`}
	if got := p.Resolve(v); got != `awk '{print $1}' /p/s $ARGUMENTS` {
		t.Errorf("resolved: %q", got)
	}
}

func TestShownDirectories(t *testing.T) {
	for path, want := range map[string]string{
		"/h/.claude/skills": "/h/.claude", "/w/.agents/commands": "/w/.agents", "/w/.claude/settings.local.json": "/w/.claude", "/w/.mcp.json": "/w/.mcp.json", "/w/.agents/plugins": "/w/.agents/plugins",
	} {
		if got := layout.Shown(path); got != want {
			t.Errorf("%s is shown as %s, want %s", path, got, want)
		}
	}
}

func TestCommandsInTexts(t *testing.T) {
	got := layout.Commands("a !`git diff` b\n!`git log`\nX!`no`\n```!\nls\npwd\n```\n!`git diff`\n`!x`")
	if d := cmp.Diff([]string{"git diff", "git log", "ls\npwd"}, got); d != "" {
		t.Error(d)
	}
}

func TestLimitOfExpansion(t *testing.T) {
	p := &layout.Prompt{Kind: layout.Command, Body: strings.Repeat("$ARGUMENTS ", 20_000)}
	got := p.Expand(strings.Repeat("x", 100_000), layout.Variables{})
	if n := strings.Count(got, "x"); n != 1_000_000 || strings.Count(got, "$ARGUMENTS") != 19_990 {
		t.Errorf("part13/5 a text that names long arguments 20,000 times has %d bytes of them, want 1,000,000", n)
	}
}
