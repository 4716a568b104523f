package persistence

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"modernc.org/sqlite"
)

// SQL functions for the checksums of rows. The checksum of a row is the sum of one hash per column,
// modulo 2^64. Each hash covers the table, the column's name, and the value with its type.
//
// An update subtracts the hash of each column's old value and adds that of the new one. It does not
// recompute the sum from the row, so earlier damage stays visible after the update. Checksums find
// accidents only: they have no key, so a program that changes rows on purpose can change them too.
const (
	sumFunction   = "row_sum"   // (spec, values): the checksum of a row
	resumFunction = "row_resum" // (spec, sum, then old and new value of each column): the checksum after an update
)

// sqliteDriver is the driver of all connections. It registers the checksum functions once.
var sqliteDriver = sync.OnceValue(func() *sqlite.Driver {
	d := &sqlite.Driver{}
	d.MustRegisterFunction(sumFunction, &sqlite.FunctionImpl{NArgs: -1, Deterministic: true, VolatileArgs: true, Scalar: sumRow})
	d.MustRegisterFunction(resumFunction, &sqlite.FunctionImpl{NArgs: -1, Deterministic: true, VolatileArgs: true, Scalar: resumRow})
	return d
})

// sumRow implements row_sum.
func sumRow(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	seeds, values, err := seedsOf(args, 1)
	if err != nil {
		return nil, err
	}
	return sumValues(seeds, values), nil
}

// sumValues adds the hashes of a row's values; seeds are parallel to values.
func sumValues(seeds []uint64, values []driver.Value) int64 {
	var sum uint64
	for i, v := range values {
		sum += hashValue(seeds[i], v)
	}
	return int64(sum)
}

// resumRow implements row_resum.
func resumRow(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	if len(args) < 2 {
		return nil, fmt.Errorf("%s of %d arguments", resumFunction, len(args))
	}
	old, ok := args[1].(int64)
	if !ok {
		return nil, fmt.Errorf("%s of a sum that is a %T", resumFunction, args[1])
	}
	args[1] = args[0]
	seeds, values, err := seedsOf(args[1:], 2)
	if err != nil {
		return nil, err
	}
	sum := uint64(old)
	for i, seed := range seeds {
		sum += hashValue(seed, values[2*i+1]) - hashValue(seed, values[2*i])
	}
	return int64(sum), nil
}

// seedsOf splits the arguments of a function into the seeds of the spec's columns and the values.
// each is the number of values per column.
func seedsOf(args []driver.Value, each int) ([]uint64, []driver.Value, error) {
	if len(args) == 0 {
		return nil, nil, fmt.Errorf("%s without a spec", sumFunction)
	}
	spec, ok := args[0].(string)
	if !ok {
		return nil, nil, fmt.Errorf("spec of a sum is a %T", args[0])
	}
	seeds := columnSeeds(spec)
	if len(seeds)*each != len(args)-1 {
		return nil, nil, fmt.Errorf("sum of %d columns has %d values: %s", len(seeds), len(args)-1, strings.Clone(spec))
	}
	return seeds, args[1:], nil
}

// knownSeeds caches columnSeeds, from spec to []uint64. Specs are parts of constant statements, so
// it does not grow without limit.
var knownSeeds sync.Map

// columnSeeds returns the initial hash of each column in a spec, such as turns(turn,turn_id).
func columnSeeds(spec string) []uint64 {
	if known, ok := knownSeeds.Load(spec); ok {
		return known.([]uint64)
	}
	spec = strings.Clone(spec) // SQLite owns the bytes of an argument
	table, columns, _ := strings.Cut(strings.TrimSuffix(spec, ")"), "(")
	var seeds []uint64
	for column := range strings.SplitSeq(columns, ",") {
		seeds = append(seeds, xxhash.Sum64String(table+"."+column))
	}
	knownSeeds.Store(spec, seeds)
	return seeds
}

// hashValue hashes a column's value with its SQLite type. Strings and blobs are hashed on their own
// first, so that the hashed data has a fixed size.
func hashValue(seed uint64, v driver.Value) uint64 {
	var data [17]byte
	binary.LittleEndian.PutUint64(data[:], seed)
	switch v := v.(type) {
	case nil:
		data[8] = 'n'
	case int64:
		data[8] = 'i'
		binary.LittleEndian.PutUint64(data[9:], uint64(v))
	case float64:
		data[8] = 'f'
		binary.LittleEndian.PutUint64(data[9:], math.Float64bits(v))
	case string:
		data[8] = 't'
		binary.LittleEndian.PutUint64(data[9:], xxhash.Sum64String(v))
	case []byte:
		data[8] = 'b'
		binary.LittleEndian.PutUint64(data[9:], xxhash.Sum64(v))
	}
	return xxhash.Sum64(data[:])
}
