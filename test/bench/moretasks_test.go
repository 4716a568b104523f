package bench

import (
	"fmt"
	"strconv"
	"strings"

	"lashd/test/fakemodel"
)

var sumColumn = task{
	name:   "sum over 30 files",
	prompt: "data/part-00.csv to data/part-29.csv have lines such as: day,city,amount. What is the sum of all amounts? Answer with the number.",
	files: func(put func(path, text string)) {
		for i := range 30 {
			var text strings.Builder
			for j := range 25 {
				fmt.Fprintf(&text, "2026-03-%02d,city-%d,%d\n", j+1, j%7, i*25+j)
			}
			put(fmt.Sprintf("data/part-%02d.csv", i), text.String())
		}
	},
	calls: func(step int, got []result) fakemodel.Step {
		if step == 0 {
			var reads [][2]string
			for i := range 30 {
				reads = append(reads, call("read", `{"path":%s}`, fmt.Sprintf("data/part-%02d.csv", i)))
			}
			return use(reads...)
		}
		sum := 0
		for _, r := range got {
			for line := range strings.Lines(r.text) {
				if parts := strings.Split(strings.TrimSpace(line), ","); len(parts) == 3 {
					n, _ := strconv.Atoi(parts[2]) // the check of the task notices a mistake
					sum += n
				}
			}
		}
		return fakemodel.Say(strconv.Itoa(sum))
	},
	cells: oneCell("I add up the last column.", `
parts = parallel([tools.read.later("data/part-%s%d.csv" % ("0" if i < 10 else "", i), plain=True) for i in range(30)])
total = 0
for part in parts:
    part.unwrap()
    for line in text.lines(part.text):
        if line:
            total += int(line.split(",")[2])
print(total)`),
	check: says("280875"),
}

var largestLog = task{
	name:   "value in the largest of 40 logs",
	prompt: "Find the largest file in logs. Which value of max_connections does it report last? Answer with the number.",
	files: func(put func(path, text string)) {
		for i := range 40 {
			n := 30 + i*13%50
			if i == 23 {
				n = 120
			}
			put(fmt.Sprintf("logs/app-%02d.log", i), strings.Repeat(lines(9)+fmt.Sprintf("config: max_connections = %d\n", 200+i), n/10)+"stop\n")
		}
	},
	calls: func(step int, got []result) fakemodel.Step {
		switch step {
		case 0:
			return use(call("shell", `{"command":"ls -S logs | head -n 1"}`))
		case 1:
			return use(call("grep", `{"pattern":"max_connections","path":%s}`, "logs/"+strings.Fields(got[0].text)[0]))
		}
		found := strings.Split(strings.TrimSpace(got[0].text), " = ")
		return fakemodel.Say(found[len(found)-1])
	},
	cells: oneCell("I look for the value in the largest file.", `
name = tools.shell("ls -S logs | head -n 1", plain=True).text.strip()
found = tools.grep("max_connections", path="logs/" + name).unwrap()["matches"]
print(found[-1]["text"].split(" = ")[1])`),
	check: says("223"),
}

// hints lead from one file to the next in words, so that a model has to read each before it knows the next.
var hints = [][2]string{
	{"start.md", "Welcome. The gardener keeps the next note, in the file that bears his trade.\n"},
	{"gardener.md", "I gave it to the one who bakes bread for the village. Ask there.\n"},
	{"baker.md", "Oh, that note? The woman who repairs clocks borrowed it on Monday.\n"},
	{"clockmaker.md", "It went to sea: look where the lights warn the ships.\n"},
	{"lighthouse.md", "You found it. The code is 7314.\n"},
}

// nextHint is a model that reads one hint a step and answers with the code in the last one.
func nextHint(read func(path string) fakemodel.Step) model {
	return func(step int, got []result) fakemodel.Step {
		if step < len(hints) {
			return read(hints[step][0])
		}
		_, code, _ := strings.Cut(got[0].text, "The code is ")
		return fakemodel.Say(code[:4])
	}
}

var followHints = task{
	name:   "five hints, one after the other",
	prompt: "start.md is the first of some notes that lead to a code. The files are gardener.md, baker.md, clockmaker.md, lighthouse.md and others. What is the code?",
	files: func(put func(path, text string)) {
		for _, h := range hints {
			put(h[0], h[1])
		}
		put("harbour.md", "Nothing here.\n")
	},
	calls: nextHint(func(path string) fakemodel.Step { return use(call("read", `{"path":%s}`, path)) }),
	cells: nextHint(func(path string) fakemodel.Step {
		return cell("I read it.", fmt.Sprintf("print(tools.read(%q).text)", path))
	}),
	check: says("7314"),
}

var smallEdit = task{
	name:   "one small edit",
	prompt: "Let the server in server.toml listen on port 9090.",
	files: func(put func(path, text string)) {
		put("server.toml", "[server]\nname = \"a\"\nport = 8080\n\n[metrics]\nport = 8081\n")
	},
	calls: func(step int, _ []result) fakemodel.Step {
		switch step {
		case 0:
			return use(call("read", `{"path":"server.toml"}`))
		case 1:
			return use(call("edit", `{"path":"server.toml","old":"port = 8080","new":"port = 9090"}`))
		}
		return fakemodel.Say("It listens on port 9090.")
	},
	cells: func(step int, _ []result) fakemodel.Step {
		switch step {
		case 0:
			return cell("I read the file.", `print(tools.read("server.toml").text)`)
		case 1:
			return cell("I change the port.", `tools.edit("server.toml", "port = 8080", "port = 9090").unwrap()`)
		}
		return fakemodel.Say("It listens on port 9090.")
	},
	check: func(_ string, read func(path string) string) string {
		if text := read("server.toml"); text != "[server]\nname = \"a\"\nport = 9090\n\n[metrics]\nport = 8081\n" {
			return fmt.Sprintf("server.toml is %q", text)
		}
		return ""
	},
}

var plainQuestion = task{
	name:   "question without tools",
	prompt: "What is the capital of Switzerland?",
	files:  func(func(path, text string)) {},
	calls:  func(int, []result) fakemodel.Step { return fakemodel.Say("Bern") },
	cells:  func(int, []result) fakemodel.Step { return fakemodel.Say("Bern") },
	check:  says("Bern"),
}

var failingCommand = task{
	name:   "command that fails first",
	prompt: "Run sh build.sh and make it succeed.",
	files: func(put func(path, text string)) {
		put("build.sh", "[ -d out ] || { echo 'there is no directory out; create it first'; exit 2; }\necho built > out/result\necho done\n")
	},
	calls: func(step int, got []result) fakemodel.Step {
		switch {
		case step == 0:
			return use(call("shell", `{"command":"sh build.sh"}`))
		case strings.Contains(got[0].text, "create it first"):
			return use(call("shell", `{"command":"mkdir out && sh build.sh"}`))
		}
		return fakemodel.Say("The build succeeds.")
	},
	cells: func(step int, got []result) fakemodel.Step {
		switch {
		case step == 0:
			return cell("I run it.", `print(tools.shell("sh build.sh").text)`)
		case strings.Contains(got[0].text, "create it first"):
			return cell("I create the directory first.", `print(tools.shell("mkdir out && sh build.sh").text)`)
		}
		return fakemodel.Say("The build succeeds.")
	},
	check: func(answer string, read func(path string) string) string {
		if text := read("out/result"); text != "built\n" {
			return fmt.Sprintf("out/result is %q", text)
		}
		return ""
	},
}

// longest is the command that finds the longest file.
const longest = "wc -l notes/* | sort -n | tail -n 2 | head -n 1"

var longestFileInShell = task{
	name:   "longest of 60 files, in a shell",
	prompt: longestFile.prompt,
	files:  notes,
	calls: func(step int, got []result) fakemodel.Step {
		if step == 0 {
			return use(call("shell", `{"command":%s}`, longest))
		}
		return fakemodel.Say(strings.Fields(got[0].text)[1])
	},
	cells: oneCell("I compare the numbers of lines.", `print(tools.shell("`+longest+`", plain=True).text.split()[1])`),
	check: says("notes/n41.txt"),
}
