package persistence

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"lashd"
)

// summed extends a statement of the writer so that it maintains the checksums of the rows it
// inserts or updates. The writer prepares every statement through summed, so none can forget them.
//
// It understands the SQL of this package only (keywords in capitals, one assignment per column) and
// rejects other forms. A value must have the type of its column: SQLite would convert the column,
// but not the argument of the checksum.
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

// Patterns of the statements that summed understands.
var (
	writeHead  = regexp.MustCompile(`(?:^|[\n )])(INSERT INTO|UPDATE) (\w+)\s`)
	insertHead = regexp.MustCompile(`INSERT INTO \w+ \(([^)]*)\)\s+(VALUES|SELECT)\s`)
	setClause  = regexp.MustCompile(`\bSET\s+`)
)

// written returns the verb (INSERT or UPDATE) and the table of a statement, or "" if it writes no
// rows.
func written(query string) (verb, table string) {
	m := writeHead.FindStringSubmatch(query)
	if m == nil {
		return "", ""
	}
	return strings.TrimSuffix(m[1], " INTO"), m[2]
}

// sumInsert adds the checksum column to an INSERT, and its value to each row of VALUES or to the
// SELECT. The statement must set all other columns, because the checksum covers the whole row.
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

// callSum returns the call of row_sum for columns with these values.
func callSum(table string, columns []string, values string) string {
	return fmt.Sprintf("%s('%s(%s)', %s)", sumFunction, table, strings.Join(columns, ","), values)
}

// sumUpdate returns the assignment that updates the checksum together with other columns. It refers
// to the old value of each column by its table, as in turns.state.
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

// intactCall matches intact(table alias) in a query.
var intactCall = regexp.MustCompile(`\bintact\((\w+) (\w+)\)`)

// expanded replaces each intact(table alias) in a query by a comparison of the row's checksum.
func expanded(query string) string {
	return intactCall.ReplaceAllStringFunc(query, func(call string) string {
		m := intactCall.FindStringSubmatch(call)
		return m[2] + ".sum IS " + sumOf(m[1], m[2])
	})
}

// sumOf returns the expression of the checksum that a row of alias must have.
func sumOf(table, alias string) string {
	columns := sumColumns()[table]
	return callSum(table, columns, alias+"."+strings.Join(columns, ", "+alias+"."))
}

// sumColumns returns, by table, the columns that its checksum covers: all of them. Tables without a
// checksum are absent.
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

// primaryKeys returns the columns of each table's primary key.
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

// Patterns for the primary key of a CREATE TABLE: a line of its own, or part of a column.
var (
	keyLine   = regexp.MustCompile(`\n  PRIMARY KEY \(([^)]*)\)`)
	keyColumn = regexp.MustCompile(`\n  ([a-z_]+) +(?:INTEGER|TEXT) PRIMARY KEY`)
)

// columnLine matches the line of a column in a CREATE TABLE.
var columnLine = regexp.MustCompile(`^  ([a-z_]+) +(?:INTEGER|TEXT|BLOB)`)

// tableColumns returns the columns of a CREATE TABLE statement with one column per line.
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

// parameter matches a parameter, numbered or not.
var parameter = regexp.MustCompile(`\?\d*`)

// numbered gives each parameter ? its number, because the checksum repeats parts of the statement.
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

// endOfClause matches the keywords that may follow a list of values or assignments.
var endOfClause = regexp.MustCompile(`^(FROM|WHERE|RETURNING|ON CONFLICT)\b`)

// clauseEnd returns the index of the keyword that ends a list of values or assignments, or the
// length of the text.
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

// closing returns the index of the parenthesis that closes the first one.
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

// splitList splits at commas outside parentheses.
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
