package bench

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"lashd/test/fakemodel"
)

// tasks returns ten tasks, and the first one again with a shell. In the others, the models use the shell only where that is
// the task, because in a shell they could write their programs as commands, with either driver.
func tasks() []task {
	return []task{
		longestFile, countPerDirectory, renameSymbol, joinTables, sumColumn, largestLog, followHints, smallEdit, plainQuestion, failingCommand, longestFileInShell,
	}
}

// says returns a check that the answer is a text.
func says(want string) func(string, func(string) string) string {
	return func(answer string, _ func(string) string) string {
		if strings.TrimSpace(answer) != want {
			return "the answer should be " + want
		}
		return ""
	}
}

// lines returns n numbered lines of prose.
func lines(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "Line %d says something about the harvest of the year.\n", i+1)
	}
	return text.String()
}

// notes makes 60 files. The longest one is notes/n41.txt.
func notes(put func(path, text string)) {
	for i := range 60 {
		n := 20 + i*37%61
		if i == 41 {
			n = 95
		}
		put(fmt.Sprintf("notes/n%02d.txt", i), lines(n))
	}
}

var longestFile = task{
	name:   "longest of 60 files",
	prompt: "Which file in notes has the most lines? Answer with its path.",
	files:  notes,
	calls: func(step int, got []result) fakemodel.Step {
		switch step {
		case 0:
			return use(call("glob", `{"pattern":%s}`, "notes/*.txt"))
		case 1:
			var reads [][2]string
			for path := range strings.FieldsSeq(got[0].text) {
				reads = append(reads, call("read", `{"path":%s}`, path))
			}
			return use(reads...)
		}
		most, longest := 0, ""
		for _, r := range got {
			if n := strings.Count(r.text, "\n"); n > most {
				most, longest = n, strings.Split(r.args, `"`)[3]
			}
		}
		return fakemodel.Say(longest)
	},
	cells: oneCell("I compare the numbers of lines.", `
paths = tools.glob("notes/*.txt").unwrap()["paths"]
results = parallel([tools.read.later(p) for p in paths])
print(max([(r.unwrap()["lastLine"], p) for r, p in zip(results, paths)])[1])`),
	check: says("notes/n41.txt"),
}

var countPerDirectory = task{
	name:   "TODOs per directory",
	prompt: "How many lines with TODO has each directory in src? Answer with lines such as: name 3. Sort them by name.",
	files: func(put func(path, text string)) {
		for i, dir := range []string{"alpha", "beta", "delta", "gamma"} {
			for j := range 9 {
				put(fmt.Sprintf("src/%s/f%d.go", dir, j), "package "+dir+"\n\n"+strings.Repeat("// TODO: write this part\n\nvar x = 1\n", (i+j)%4))
			}
		}
	},
	calls: func(step int, got []result) fakemodel.Step {
		if step == 0 {
			return use(call("grep", `{"pattern":"TODO","path":"src","limit":200}`))
		}
		count := map[string]int{}
		for line := range strings.Lines(got[0].text) {
			if parts := strings.Split(line, "/"); len(parts) > 3 {
				count[parts[1]]++
			}
		}
		var answer []string
		for _, dir := range slices.Sorted(maps.Keys(count)) {
			answer = append(answer, fmt.Sprint(dir, " ", count[dir]))
		}
		return fakemodel.Say(strings.Join(answer, "\n"))
	},
	cells: oneCell("I count the matches.", `
count = {}
for m in tools.grep("TODO", path="src", limit=200).unwrap()["matches"]:
    dir = m["path"].split("/")[1]
    count[dir] = count.get(dir, 0) + 1
print("\n".join(["%s %d" % (dir, count[dir]) for dir in sorted(count)]))`),
	check: says("alpha 12\nbeta 13\ndelta 14\ngamma 15"),
}

var renameSymbol = task{
	name:   "rename in 20 files",
	prompt: "Rename the function loadConfig to readConfig in all files of src.",
	files: func(put func(path, text string)) {
		for i := range 30 {
			text := fmt.Sprintf("package src\n\nfunc f%d() int {\n\treturn %d\n}\n", i, i)
			if i < 20 {
				text += fmt.Sprintf("\nfunc g%d() {\n\tc := loadConfig(%q)\n\tuse(c, loadConfig)\n}\n", i, fmt.Sprint("file", i))
			}
			put(fmt.Sprintf("src/f%02d.go", i), text)
		}
	},
	calls: func(step int, got []result) fakemodel.Step {
		switch step {
		case 0:
			return use(call("grep", `{"pattern":"loadConfig","path":"src","limit":200}`))
		case 1:
			var edits [][2]string
			seen := map[string]bool{}
			for line := range strings.Lines(got[0].text) {
				if path, _, ok := strings.Cut(line, ":"); ok && !seen[path] {
					seen[path] = true
					edits = append(edits, call("edit", `{"path":%s,"old":"loadConfig","new":"readConfig","replaceAll":true}`, path))
				}
			}
			return use(edits...)
		}
		return fakemodel.Say(fmt.Sprintf("I renamed it in %d files.", len(got)))
	},
	cells: oneCell("I replace it in each file that has it.", `
paths = sorted(set([m["path"] for m in tools.grep("loadConfig", path="src", limit=200).unwrap()["matches"]]))
for path in paths:
    tools.edit(path, "loadConfig", "readConfig", replaceAll=True).unwrap()
print("I renamed it in %d files." % len(paths))`),
	check: func(answer string, read func(path string) string) string {
		for i := range 20 {
			text := read(fmt.Sprintf("src/f%02d.go", i))
			if strings.Contains(text, "loadConfig") || strings.Count(text, "readConfig") != 2 {
				return fmt.Sprintf("file %d is %q", i, text)
			}
		}
		return says("I renamed it in 20 files.")(answer, read)
	},
}

var joinTables = task{
	name:   "join two tables",
	prompt: "users.csv has id,name and orders.csv has user,amount. Write totals.csv with the header name,total and a line for each user, sorted by name.",
	files: func(put func(path, text string)) {
		users, orders := "id,name\n", "user,amount\n"
		for i := range 40 {
			users += fmt.Sprintf("%d,name-%02d\n", i+100, i*7%40)
		}
		for i := range 120 {
			orders += fmt.Sprintf("%d,%d\n", i*11%40+100, i+1)
		}
		put("users.csv", users)
		put("orders.csv", orders)
	},
	calls: func(step int, got []result) fakemodel.Step {
		switch step {
		case 0:
			return use(call("read", `{"path":"users.csv"}`), call("read", `{"path":"orders.csv"}`))
		case 1:
			return use(call("write", `{"path":"totals.csv","content":%s}`, totals(got[0].text, got[1].text)))
		}
		return fakemodel.Say("totals.csv has 40 users.")
	},
	cells: oneCell("I add up the orders of each user.", `
def rows(path):
    return [line.split(",") for line in text.lines(tools.read(path, plain=True).text)[1:] if line]

sums = {}
for user, amount in rows("orders.csv"):
    sums[user] = sums.get(user, 0) + int(amount)
table = sorted([(name, sums.get(id, 0)) for id, name in rows("users.csv")])
tools.write("totals.csv", "name,total\n" + "".join(["%s,%d\n" % row for row in table])).unwrap()
print("totals.csv has %d users." % len(table))`),
	check: func(answer string, read func(path string) string) string {
		text := read("totals.csv")
		if !strings.HasPrefix(text, "name,total\nname-00,123\n") || !strings.HasSuffix(text, "\nname-39,204\n") || strings.Count(text, "\n") != 41 {
			return fmt.Sprintf("totals.csv is %q", text)
		}
		return says("totals.csv has 40 users.")(answer, read)
	},
}

// totals joins the numbered lines of both tables, as a model would in its head.
func totals(users, orders string) string {
	cells := func(text string) (all [][2]string) {
		for line := range strings.Lines(text) {
			_, line, _ = strings.Cut(strings.TrimSpace(line), "\t")
			if a, b, ok := strings.Cut(line, ","); ok && a != "id" && a != "user" {
				all = append(all, [2]string{a, b})
			}
		}
		return all
	}
	sums := map[string]int{}
	for _, o := range cells(orders) {
		n, _ := strconv.Atoi(o[1]) // the check of the task notices a mistake
		sums[o[0]] += n
	}
	var rows []string
	for _, u := range cells(users) {
		rows = append(rows, fmt.Sprintf("%s,%d\n", u[1], sums[u[0]]))
	}
	slices.Sort(rows)
	return "name,total\n" + strings.Join(rows, "")
}
