package persistence

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"lashd"
)

// summed has a statement of the writer keep the sums of the rows that it inserts or updates. The writer prepares every statement
// through it, so that none can forget the sum. It understands the SQL of this package, which has its keywords in capitals and sets
// columns one by one, and refuses what it does not understand. The values must have the type of their column: SQLite would convert
// the column, but not the argument of the sum.
func summed(query string) (string, error) {
	query = expanded(query)
	verb, table := written(query)
	columns := sumColumns()[table]
	if len(columns) == 0 {
		return query, nil // it reads or deletes, or the table has no sums
	}
	query = numbered(query)
	var err error
	if verb == "INSERT" {
		if query, err = sumInsert(query, table, columns); err != nil {
			return "", fmt.Errorf("statement %.80q: %w", query, err)
		}
	}
	at := setClause.FindStringIndex(query)
	if at == nil {
		return query, nil
	}
	end := at[1] + clauseEnd(query[at[1]:])
	assignments := strings.TrimRight(query[at[1]:end], " \n")
	sum, err := sumUpdate(table, assignments)
	if err != nil {
		return "", fmt.Errorf("statement %.80q: %w", query, err)
	}
	return query[:at[1]] + assignments + ", " + sum + "\n" + query[end:], nil
}

var (
	writeHead  = regexp.MustCompile(`(?:^|[\n )])(INSERT INTO|UPDATE) (\w+)\s`)
	insertHead = regexp.MustCompile(`INSERT INTO \w+ \(([^)]*)\)\s+(VALUES|SELECT)\s`)
	setClause  = regexp.MustCompile(`\bSET\s+`)
)

// written is what a statement does to which table; empty if it inserts and updates nothing.
func written(query string) (verb, table string) {
	m := writeHead.FindStringSubmatch(query)
	if m == nil {
		return "", ""
	}
	return strings.TrimSuffix(m[1], " INTO"), m[2]
}

// sumInsert adds the column of the sum to an INSERT that sets all others, and the sum to each of its rows.
func sumInsert(query, table string, columns []string) (string, error) {
	m := insertHead.FindStringSubmatchIndex(query)
	if m == nil {
		return "", fmt.Errorf("it has no list of columns before VALUES or SELECT")
	}
	named := splitList(query[m[2]:m[3]])
	if len(named) != len(columns) {
		return "", fmt.Errorf("it sets %d columns of %s, which has %d: each must be set, so that the sum covers it", len(named), table, len(columns))
	}
	head := query[:m[3]] + ", sum" + query[m[3]:m[1]]
	if query[m[4]:m[5]] == "SELECT" {
		end := m[1] + clauseEnd(query[m[1]:])
		list := strings.TrimRight(query[m[1]:end], " \n")
		return head + list + ", " + callSum(table, named, list) + "\n" + query[end:], nil
	}
	rest := query[m[1]:]
	for strings.HasPrefix(rest, "(") {
		end := closing(rest)
		list := rest[1:end]
		head += "(" + list + ", " + callSum(table, named, list) + ")"
		rest = rest[end+1:]
		if next := strings.TrimLeft(rest, ", \n"); strings.HasPrefix(rest, ",") {
			head, rest = head+", ", next
		}
	}
	return head + rest, nil
}

func callSum(table string, columns []string, values string) string {
	return fmt.Sprintf("%s('%s(%s)', %s)", sumFunction, table, strings.Join(columns, ","), values)
}

// sumUpdate is the assignment of the sum that goes with others.
func sumUpdate(table, assignments string) (string, error) {
	var columns []string
	var values strings.Builder
	for _, a := range splitList(assignments) {
		column, value, ok := strings.Cut(a, " = ")
		if !ok || strings.ContainsAny(column, "( ") {
			return "", fmt.Errorf("%q does not set one column", a)
		}
		columns = append(columns, column)
		fmt.Fprintf(&values, ", %s.%s, %s", table, column, value)
	}
	return fmt.Sprintf("sum = %s('%s(%s)', %s.sum%s)", resumFunction, table, strings.Join(columns, ","), table, values.String()), nil
}

var intactCall = regexp.MustCompile(`\bintact\((\w+) (\w+)\)`)

// expanded replaces each intact(table alias) of a query by the test whether a row has its sum.
func expanded(query string) string {
	return intactCall.ReplaceAllStringFunc(query, func(call string) string {
		m := intactCall.FindStringSubmatch(call)
		return m[2] + ".sum IS " + sumOf(m[1], m[2])
	})
}

// sumOf is the expression for what the sum of a row of a table must be. The rows are those of alias.
func sumOf(table, alias string) string {
	columns := sumColumns()[table]
	return callSum(table, columns, alias+"."+strings.Join(columns, ", "+alias+"."))
}

// sumColumns are the columns that the sums of each table cover: all of them. Tables without sums are not in it.
var sumColumns = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for _, statement := range schemaStatements(lashd.Schema) {
		table, columns := tableColumns(statement)
		if n := len(columns) - 1; n > 0 && columns[n] == "sum" {
			all[table] = columns[:n]
		}
	}
	return all
})

// primaryKeys are the columns of the primary key of each table.
var primaryKeys = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for _, statement := range schemaStatements(lashd.Schema) {
		table, _ := tableColumns(statement)
		if m := keyLine.FindStringSubmatch(statement); m != nil {
			all[table] = splitList(m[1])
		} else if m := keyColumn.FindStringSubmatch(statement); m != nil {
			all[table] = m[1:]
		}
	}
	return all
})

var (
	keyLine   = regexp.MustCompile(`\n  PRIMARY KEY \(([^)]*)\)`)
	keyColumn = regexp.MustCompile(`\n  ([a-z_]+) +(?:INTEGER|TEXT) PRIMARY KEY`)
)

var columnLine = regexp.MustCompile(`^  ([a-z_]+) +(?:INTEGER|TEXT|BLOB)`)

// tableColumns reads the names of a CREATE TABLE, which has each column on a line of its own.
func tableColumns(statement string) (table string, columns []string) {
	rest, ok := strings.CutPrefix(statement, "CREATE TABLE ")
	if !ok {
		return "", nil
	}
	table, _, _ = strings.Cut(rest, " ")
	for line := range strings.Lines(rest) {
		if m := columnLine.FindStringSubmatch(line); m != nil {
			columns = append(columns, m[1])
		}
	}
	return table, columns
}

var parameter = regexp.MustCompile(`\?\d*`)

// numbered gives each ? its number, as parts of the statement are repeated in the sum.
func numbered(query string) string {
	n := 0
	return parameter.ReplaceAllStringFunc(query, func(p string) string {
		if p != "?" {
			return p
		}
		n++
		return fmt.Sprint("?", n)
	})
}

var endOfClause = regexp.MustCompile(`^(FROM|WHERE|RETURNING|ON CONFLICT)\b`)

// clauseEnd is where the keyword stands that ends a list, or the end of the text.
func clauseEnd(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 && i > 0 && (text[i-1] == ' ' || text[i-1] == '\n') && endOfClause.MatchString(text[i:]) {
			return i
		}
	}
	return len(text)
}

// closing is where the first parenthesis of a text is closed.
func closing(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text) - 1
}

// splitList splits at the commas that are in no parentheses.
func splitList(text string) (parts []string) {
	depth, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts, from = append(parts, strings.TrimSpace(text[from:i])), i+1
			}
		}
	}
	return append(parts, strings.TrimSpace(text[from:]))
}
