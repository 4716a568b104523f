package markdown_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"lashd/cmd/lash/markdown"
)

// rendered returns the lines of a text in one string.
func rendered(text string, style markdown.Style) string {
	return strings.Join(markdown.Render(text, style), "\n")
}

func TestRender(t *testing.T) {
	for _, test := range []struct{ name, source, want string }{
		{"a paragraph is one line", "one\ntwo\n\nthree", "one two\n\nthree"},
		{"a hard line break stays", "one  \ntwo\\\nthree", "one\ntwo\nthree"},
		{"scripts without spaces are joined without one", "日本\n語\nabc", "日本語 abc"},
		{"headings keep their level", "# A *b*\ntext\n### C\nD\n=", "# A b\ntext\n\n### C\n# D"},
		{"lists keep their nesting and their empty lines", "* a\n* b\n  + c\n    1. d\n\n* e", "- a\n- b\n  - c\n    1. d\n\n- e"},
		{"ordered lists count from their first number", "3. a\n3. b\n\n   c\n9. d", "3. a\n4. b\n\n   c\n5. d"},
		{"numbers with code blocks between stay", "1. a\n```\nx\n```\n2. b", "1. a\n──\nx\n──\n2. b"},
		{"task lists", "- [x] a\n- [ ] b", "- [x] a\n- [ ] b"},
		{"quotes", "> a\nb\n>\n> > c", "│ a b\n│\n│ │ c"},
		{"code keeps its spaces", "a\n```go\nif x {\n\ty  \n\n}\n```\nb", "a\n── go\nif x {\n    y\n\n}\n──\nb"},
		{"code in a list", "1. a\n   ```sh\n   b\n   ```", "1. a\n   ── sh\n   b\n   ──"},
		{"code that does not end", "```\na\n\nb", "──\na\n\nb\n──"},
		{"links show their address", "[a](http://b.c) <http://d.e> http://f.g [h@i.j](mailto:h@i.j) ![k](l.png)", "a (http://b.c) http://d.e http://f.g h@i.j k (l.png)"},
		{"rules", "a\n\n***\nb", "a\n\n────────────────────────\nb"},
		{"HTML is text", "<details>\n<b>a</b>\n</details>\n\na <br> &lt; &amp;amp;", "<details>\n<b>a</b>\n</details>\n\na <br> < &amp;"},
		{"footnotes and definitions are text", "a[^1] [b][c]\n\n[^1]: d\n\n[c]: http://e.f", "a[^1] [b][c]\n\n[^1]: d\n\n[c]: http://e.f"},
		{"emphasis", "**a** *b* ~~c~~ `d  *e*` \\*f\\* g_h_i", "a b c d  *e* *f* g_h_i"},
		{"carriage returns", "a\r\n\r\n```\r\nb\r\n```\r\n", "a\n\n──\nb\n──"},
		{"nothing", "\n\n \n", ""},
	} {
		t.Run("part/12 "+test.name, func(t *testing.T) {
			if got := rendered(test.source, markdown.Style{}); got != test.want {
				t.Errorf("%q is\n%s\nwant\n%s", test.source, got, test.want)
			}
		})
	}
}

func TestAttributes(t *testing.T) {
	t.Run("part/12 text has the colors of the palette", func(t *testing.T) {
		for source, want := range map[string]string{
			"# a": "\x1b[1;4;36ma\x1b[m", "## a": "\x1b[1;36ma\x1b[m", "**a *b***": "\x1b[1ma \x1b[m\x1b[1;3mb\x1b[m", "~~a~~ `b`": "\x1b[9ma\x1b[m \x1b[36mb\x1b[m",
			"- [x] a": "\x1b[2m- \x1b[m\x1b[32m[x] \x1b[ma", "> a": "\x1b[2m│ \x1b[ma", "http://a.b": "\x1b[4;34mhttp://a.b\x1b[m",
		} {
			if got := rendered(source, markdown.Style{Theme: markdown.Palette}); got != want {
				t.Errorf("%q is %q, want %q", source, got, want)
			}
		}
		if got := rendered("# a **b** `c`", markdown.Style{Theme: markdown.Mono}); got != "\x1b[1;4ma b c\x1b[m" {
			t.Errorf("without colors it is %q", got)
		}
	})
}

func TestTables(t *testing.T) {
	source := "|Name|Größe|Note|\n|-|-:|:-:|\n|日本語|12|✅ ok|\n|👩‍👩‍👧 family|3,400|`a|b\\|c`|\n|🇩🇪|1|é"
	t.Run("part/12 columns of a table are aligned", func(t *testing.T) {
		want := "Name      │ Größe │ Note\n──────────┼───────┼──────\n日本語    │    12 │ ✅ ok\n👩‍👩‍👧 family │ 3,400 │  `a\n🇩🇪        │     1 │   é"
		if got := rendered(source, markdown.Style{Width: 40}); got != want {
			t.Errorf("it is\n%s\nwant\n%s", got, want)
		}
	})
	long := "| Key | Meaning |\n|---|---|\n| a | one two three four five |\n| b | " + strings.Repeat("x", 30) + " |\n"
	t.Run("part/12 cells of a table are wrapped to fit the width", func(t *testing.T) {
		want := "Key │ Meaning\n────┼────────────────\na   │ one two three\n    │ four five\n────┼────────────────\nb   │ xxxxxxxxxxxxxxx\n    │ xxxxxxxxxxxxxxx"
		if got := rendered(long, markdown.Style{Width: 21}); got != want {
			t.Errorf("it is\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("part/12 a table that does not fit becomes a list", func(t *testing.T) {
		want := "Aaaaaaaaaaa: 1111111111\nB: 2222222222\nC: 3333333333\n\nAaaaaaaaaaa: 4\nB: 5\nC: 6"
		if got := rendered("|Aaaaaaaaaaa|B|C|\n|-|-|-|\n|1111111111|2222222222|3333333333|\n|4|5|6", markdown.Style{Width: 20}); got != want {
			t.Errorf("it is\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("part/12 no line of a table is wider than the terminal", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			columns, width := rapid.IntRange(1, 4).Draw(t, "columns"), rapid.IntRange(50, 120).Draw(t, "width")
			cell := rapid.SampledFrom([]string{"", "a", "two words", "日本語のテキスト", strings.Repeat("long ", 20), strings.Repeat("w", 70), "👩‍👩‍👧 x", "**b** `c`"})
			var source strings.Builder
			for range 4 {
				for range columns {
					source.WriteString("|" + cell.Draw(t, "cell"))
				}
				source.WriteString("|\n")
				if !strings.Contains(source.String(), "-|") {
					source.WriteString(strings.Repeat("|---", columns) + "|\n")
				}
			}
			for _, l := range markdown.Render(source.String(), markdown.Style{Width: width, Theme: markdown.Dark}) {
				if w := ansi.StringWidth(l); w > width {
					t.Fatalf("%q of %q has %d columns, more than %d", l, source.String(), w, width)
				}
			}
		})
	})
}

// document draws a text, and the words in it in order.
func document(t *rapid.T) (source string, words []string) {
	word := func() string {
		words = append(words, fmt.Sprintf("w%dx", len(words)))
		return words[len(words)-1]
	}
	phrase := func() string {
		var out []string
		for range rapid.IntRange(1, 5).Draw(t, "words") {
			mark := rapid.SampledFrom([]string{"", "", "**", "*", "`", "~~", "***"}).Draw(t, "mark")
			out = append(out, mark+word()+mark)
		}
		return strings.Join(out, " ")
	}
	blocks := map[string]func() string{
		"paragraph": func() string { return phrase() + "\n" + phrase() },
		"link":      func() string { return phrase() + " [" + word() + "](http://" + word() + ".example)" },
		"heading":   func() string { return strings.Repeat("#", rapid.IntRange(1, 6).Draw(t, "level")) + " " + phrase() },
		"setext":    func() string { return phrase() + "\n---" },
		"list": func() string {
			return "- " + phrase() + "\n  " + phrase() + "\n  1. " + phrase() + "\n- [ ] " + phrase()
		},
		"ordered": func() string { return "1. " + phrase() + "\n\n   " + phrase() + "\n2. " + phrase() },
		"quote":   func() string { return "> " + phrase() + "\n" + phrase() + "\n> - " + phrase() },
		"code":    func() string { return "```" + word() + "\n" + word() + "  " + word() + "\n\n\t" + word() + "\n```" },
		"python": func() string {
			return "```py\n" + strings.Repeat("def "+word()+"(): '''"+word()+"\n"+word()+"'''\n", 1) + "\n```"
		},
		"table": func() string {
			return "| " + word() + " | " + word() + " |\n|---|---|\n| " + phrase() + " | " + phrase() + " |"
		},
		"html":     func() string { return "<div>\n" + word() + "\n</div>" },
		"indented": func() string { return "    " + word() + "\n\n    " + word() },
		"rule":     func() string { return "***" },
		"note":     func() string { return "[^1]: " + word() + " &amp; \\* " + word() },
	}
	var out []string
	for range rapid.IntRange(1, 8).Draw(t, "blocks") {
		out = append(out, blocks[rapid.SampledFrom(slices.Sorted(keys(blocks))).Draw(t, "kind")]())
	}
	return strings.Join(out, "\n\n"), words
}

// keys returns the keys of a map.
func keys(m map[string]func() string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// themes are all themes.
var themes = []markdown.Theme{markdown.Plain, markdown.Mono, markdown.Palette, markdown.Dark, markdown.Light}

func TestStream(t *testing.T) {
	t.Run("part/12 the lines do not depend on how the text is cut into pieces", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			source, _ := document(t)
			if rapid.Bool().Draw(t, "torn") {
				source = rapid.String().Draw(t, "before") + source[rapid.IntRange(0, len(source)-1).Draw(t, "from"):]
			}
			style := markdown.Style{Width: 60, Theme: rapid.SampledFrom(themes).Draw(t, "theme"), Links: rapid.Bool().Draw(t, "links")}
			s, got := markdown.NewStream(style), []string(nil)
			for rest := source; rest != ""; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
				got = append(got, s.Add(rest[:n])...)
				s.Rest()
				rest = rest[n:]
			}
			got = append(got, s.End()...)
			if want := markdown.Render(source, style); !slices.Equal(got, want) {
				t.Fatalf("%q\nin pieces is\n%s\nat once\n%s", source, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	})
	t.Run("part/12 the text has every word of the source once, in order", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			source, want := document(t)
			text := ansi.Strip(rendered(source, markdown.Style{Theme: rapid.SampledFrom(themes).Draw(t, "theme")}))
			var got []string
			for _, w := range strings.FieldsFunc(text, func(r rune) bool { return r != 'w' && r != 'x' && (r < '0' || r > '9') }) {
				if strings.HasPrefix(w, "w") && strings.HasSuffix(w, "x") && len(w) > 2 {
					got = append(got, w)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%q\nis\n%s\nwith %q, want %q", source, text, got, want)
			}
		})
	})
	t.Run("part/12 no line ends with a space, and a paragraph has no newline", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			source, _ := document(t)
			paragraph := strings.TrimSpace(strings.Repeat("many words ", 40))
			lines := markdown.Render(source+" \t\n\n"+paragraph, markdown.Style{Width: 40, Theme: rapid.SampledFrom(themes).Draw(t, "theme")})
			for _, l := range lines {
				if bare := ansi.Strip(l); strings.TrimRight(bare, " \t") != bare {
					t.Fatalf("%q of %q ends with a space", l, source)
				}
			}
			if last := lines[len(lines)-1]; last != paragraph {
				t.Fatalf("the last line of %q is %q", source, last)
			}
		})
	})
	t.Run("part/12 an unfinished block does not move when it is finished", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			source, _ := document(t)
			style := markdown.Style{Theme: rapid.SampledFrom(themes).Draw(t, "theme")}
			at := rapid.IntRange(0, len(source)).Draw(t, "at")
			s := markdown.NewStream(style)
			shown := ansi.Strip(strings.Join(append(s.Add(source[:at]), s.Rest()...), "\n"))
			now := ansi.Strip(rendered(source[:at], style))
			if at == len(source) && strings.TrimSuffix(shown, "\n──") != strings.TrimSuffix(now, "\n──") {
				t.Fatalf("%q shows\n%s\nwant\n%s", source, shown, now)
			}
			// Only the last line may still change, or the ones of a table.
			final, seen := strings.Split(ansi.Strip(rendered(source, style)), "\n"), strings.Split(shown, "\n")
			for i, l := range seen[:len(seen)-1] {
				if strings.ContainsAny(l, "│|") || strings.HasPrefix(strings.TrimSpace(seen[i+1]), "──") {
					return
				}
				if i >= len(final) || l != final[i] {
					t.Fatalf("%q shows\n%s\nwant\n%s", source[:at], shown, strings.Join(final, "\n"))
				}
			}
		})
	})
	t.Run("part/12 emphasis, code and links are styled before they are closed", func(t *testing.T) {
		for source, want := range map[string]string{
			"a **b": "a b", "a **": "a", "a `b": "a b", "a `": "a", "a *b **c": "a b c", "# a ~~b": "# a b", "- x\n- a _b": "- x\n- a b", "a [b](http://c": "a b (http://c)",
			"2 * 3": "2 * 3", "a_b": "a_b", "> **q": "│ q", "``": "", "a\n\n```": "", "```g": "── g",
			"|a|b|": "a │ b\n──┼──", "|a|b|\n|": "a │ b\n──┼──", "|a|b|\n|:-": "a │ b\n──┼──", "|a|b|\n|-|-|": "a │ b\n──┼──", "|a|b|\n|-|-|\n|1": "a │ b\n──┼──\n1 │", "|a|b|\nc": "|a|b| c", "|": "|",
		} {
			s := markdown.NewStream(markdown.Style{})
			s.Add(source)
			if got := strings.Join(s.Rest(), "\n"); got != want {
				t.Errorf("%q shows %q, want %q", source, got, want)
			}
		}
	})
	t.Run("part/12 code is finished before it ends", func(t *testing.T) {
		for language, want := range map[string]int{"go": 97, "": 101, "diff": 101} { // with the line above it
			s := markdown.NewStream(markdown.Style{Theme: markdown.Dark})
			if got := len(s.Add("```" + language + "\n" + strings.Repeat("x := 1\n", 100))); got != want {
				t.Errorf("%d lines of %q are finished, want %d", got, language, want)
			}
		}
	})
}

func TestUntrustedText(t *testing.T) {
	t.Run("part/12 text cannot control the terminal", func(t *testing.T) {
		style := markdown.Style{Links: true, Theme: markdown.Plain}
		for source, want := range map[string]string{
			"a\x1b[31mb":                    `a\u001b[31mb`,
			"&#27;[31m &#x9b;1m &#0;":       `\u001b[31m \u009b1m ` + "\ufffd",
			"`\x1b]52;c;x\a`":               `\u001b]52;c;x\u0007`,
			"```\n\x1b[2J\n```":             "──\n\\u001b[2J\n──",
			"```\x1b[2J\n```":               "── \\u001b[2J\n──",
			"| \x1b |\n|---|":               "\\u001b\n──────",
			"<b \x1b>":                      `<b \u001b>`,
			"[a](<http://b.c/\x1b]8;;>)":    "\x1b]8;;http://b.c/%5Cu001b%5D8;;\x1b\\a\x1b]8;;\x1b\\",
			"[a](javascript:x)":             "a (javascript:x)",
			"[http://good](http://evil)":    "http://good (http://evil)",
			"[good](http://evil)":           "\x1b]8;;http://evil\x1b\\good\x1b]8;;\x1b\\",
			"http://a.b/?c=\u202e":          "\x1b]8;;http://a.b/?c=\x1b\\http://a.b/?c=\x1b]8;;\x1b\\\\u202e",
			"[x](http://a&#27;&#7;b \"t\")": `x (http://a\u001b\u0007b)`,
		} {
			if got := rendered(source, style); got != want {
				t.Errorf("%q is %q, want %q", source, got, want)
			}
		}
	})
}

func TestFiles(t *testing.T) {
	t.Run("part/12 names of files are links", func(t *testing.T) {
		style := markdown.Style{Links: true, File: func(path string, line int) string {
			if path != "a/b.go" {
				return ""
			}
			return fmt.Sprintf("file:///w/%s#%d", path, line)
		}}
		shown := func(line, text string) string {
			return "\x1b]8;;file:///w/a/b.go#" + line + "\x1b\\" + text + "\x1b]8;;\x1b\\"
		}
		for source, want := range map[string]string{
			"see a/b.go:12, e.g.": "see " + shown("12", "a/b.go:12") + ", e.g.", "`a/b.go:3:4` c.go:1": shown("3", "a/b.go:3:4") + " c.go:1", "[x](a/b.go#L7)": shown("7", "x"), "[x](c.go)": "x (c.go)",
		} {
			if got := rendered(source, style); got != want {
				t.Errorf("%q is %q, want %q", source, got, want)
			}
		}
		style.Links = false
		if got := rendered("a/b.go:12 [x](a/b.go#L7)", style); got != "a/b.go:12 x (a/b.go#L7)" {
			t.Errorf("without links it is %q", got)
		}
	})
}

func TestCode(t *testing.T) {
	t.Run("part/12 code has colors by language or file name", func(t *testing.T) {
		style := markdown.Style{Theme: markdown.Palette}
		for language, want := range map[string]string{
			"go": "\x1b[35mreturn\x1b[m \x1b[32m\"a\"\x1b[m, \x1b[33m1\x1b[m \x1b[2m// c\x1b[m", "golang": "\x1b[35mreturn\x1b[m \x1b[32m\"a\"\x1b[m, \x1b[33m1\x1b[m \x1b[2m// c\x1b[m",
			"main.go": "\x1b[35mreturn\x1b[m \x1b[32m\"a\"\x1b[m, \x1b[33m1\x1b[m \x1b[2m// c\x1b[m", "unknown": `return "a", 1 // c`, "": `return "a", 1 // c`,
		} {
			if got := strings.Join(markdown.Code(language, `return "a", 1 // c`, style), "\n"); got != want {
				t.Errorf("%s is %q, want %q", language, got, want)
			}
		}
		if got := strings.Join(markdown.Code("go", "return 1", markdown.Style{Theme: markdown.Mono}), ""); got != "return 1" {
			t.Errorf("without colors it is %q", got)
		}
	})
	t.Run("part/12 code keeps its text in every language", func(t *testing.T) {
		source, err := os.ReadFile("markdown.go")
		if err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll(string(source), "\t", "    ")
		for _, language := range []string{"go", "py", "js", "tsx", "c", "c++", "c#", "java", "rust", "sh", "console", "html", "json", "yaml", "toml", "sql", "docker", "make", "rb", "php", "xml", "css", "hcl", "lua", "swift", "kotlin", "starlark"} {
			got := markdown.Code(language, string(source), markdown.Style{Theme: markdown.Palette})
			if text := ansi.Strip(strings.Join(got, "\n")); text != want {
				t.Errorf("%s changes the text", language)
			}
			if language != "console" && !strings.Contains(strings.Join(got, ""), "\x1b[") {
				t.Errorf("%s has no colors", language)
			}
		}
	})
	t.Run("part/12 a diff has colors", func(t *testing.T) {
		want := []string{"\x1b[1m--- a/x\x1b[m", "\x1b[1m+++ b/x\x1b[m", "\x1b[36m@@ -1,2 +1,2 @@\x1b[m", "\x1b[31m-a\x1b[m", "\x1b[32m+b\x1b[m", " c", "\x1b[2m\\ No newline at end of file\x1b[m"}
		diff := "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n\\ No newline at end of file\n"
		if got := markdown.Diff(diff, markdown.Style{Theme: markdown.Palette}); !slices.Equal(got, want) {
			t.Errorf("it is %q, want %q", got, want)
		}
	})
}

func TestDiffPart(t *testing.T) {
	t.Run("part/12 a part of a line has the color of the line", func(t *testing.T) {
		for line, want := range map[string]string{"+x": "\x1b[32ma\x1b[m", "-x": "\x1b[31ma\x1b[m", "--- x": "\x1b[31ma\x1b[m", "+++ x": "\x1b[32ma\x1b[m", " x": "a", `\ No`: "\x1b[2ma\x1b[m", "": "a"} {
			if got := markdown.DiffPart("a", line, markdown.Style{Theme: markdown.Palette}); got != want {
				t.Errorf("with %q it is %q, want %q", line, got, want)
			}
		}
	})
}

// answer returns a text of about n bytes with all kinds of blocks.
func answer(n int) string {
	part := "## Section\n\nSome **bold** text with `code` and a [link](https://go.dev/doc) that is\nlong enough for two lines.\n\n- one\n  - two\n- three\n\n" +
		"```go\nfunc f(x int) string {\n\treturn fmt.Sprint(\"a\", x) // comment\n}\n```\n\n| a | b |\n|---|---|\n| 1 | two |\n\n> quote\n\n1. first\n2. second\n\n"
	return strings.Repeat(part, n/len(part)+1)
}

func BenchmarkStream(b *testing.B) {
	for _, size := range []int{1 << 10, 10 << 10, 100 << 10} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			source := answer(size)
			b.SetBytes(int64(len(source)))
			for b.Loop() {
				stream(source, 10)
			}
		})
	}
}

// stream renders a text that arrives in pieces, and shows the unfinished block
// after every so many of them.
func stream(source string, every int) {
	s := markdown.NewStream(markdown.Style{Width: 100, Theme: markdown.Dark})
	for i := 0; i < len(source); i += 12 {
		s.Add(source[i:min(i+12, len(source))])
		if i%(12*every) == 0 {
			s.Rest()
		}
	}
	s.End()
}

func TestCost(t *testing.T) {
	paragraph := strings.Repeat("one **two** three `four` ", 2400)
	for name, source := range map[string]string{
		"an answer": answer(48 << 10), "a paragraph": paragraph, "a list item": "- " + strings.ReplaceAll(paragraph, " t", "\n  t"),
		"a quote": "> " + strings.ReplaceAll(paragraph, " t", "\nt"), "code": "```go\n" + strings.Repeat("x := f(\"a\") // b\n", 1200),
		"a table": "|a|b|\n|-|-|\n" + strings.Repeat("|one|two\n", 6000), "emphasis": strings.Repeat("*a _b ", 8000),
	} {
		t.Run("part/12 the work is proportional to the text: "+name, func(t *testing.T) {
			used := func(n int) float64 {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				stream(source[:n], 100)
				runtime.ReadMemStats(&after)
				return float64(after.TotalAlloc - before.TotalAlloc)
			}
			used(len(source) / 4) // reads the lexers
			small, large := used(len(source)/4), used(len(source))
			if large > 6*small {
				t.Errorf("4 times the text takes %.1f times the memory", large/small)
			}
		})
	}
}
