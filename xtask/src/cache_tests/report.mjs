// Joins the results of http-cache-tests with its list of tests, for people and for `xtask`.
//
// Run in the folder of the package, with the file that its command-line client printed as the only
// argument. One line for each test that concerns a proxy, its fields between tabs:
//   test, suite, name of the suite, kind, id, outcome, name, message
// and one for each set of results of others that the package carries:
//   peer, name, kind, how many passed
// Which outcome a result is, is the package's own verdict (lib/display.mjs).

import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const load = file => import(pathToFileURL(path.resolve(file)))
const suites = [...(await load('tests/index.mjs')).default]
suites.push((await load('tests/surrogate-control.mjs')).default)
const { determineTestResult } = await load('lib/display.mjs')

// The verdicts are told apart by their symbols only.
const OUTCOMES = new Map([
  ['✅', 'pass'], ['Y', 'pass'], ['⛔️', 'fail'], ['⚠️', 'fail'], ['N', 'fail'],
  ['🔹', 'setup'], ['↻', 'setup'], ['⁉️', 'harness'], ['⚪️', 'dependency'], ['-', 'untested']
])

function outcome (id, results) {
  const symbol = determineTestResult(suites, id, results)[2]
  return OUTCOMES.get(symbol) || 'harness'
}

const oneLine = text => String(text).replace(/\s+/g, ' ').trim()
const read = file => JSON.parse(fs.readFileSync(file, 'utf8'))
const kind = test => test.kind || 'required'
const concernsProxies = test => test.browser_only !== true

const results = read(process.argv[2])
for (const suite of suites) {
  for (const test of suite.tests.filter(concernsProxies)) {
    const result = results[test.id]
    const message = Array.isArray(result) ? result.join(': ') : ''
    const fields = [
      'test', suite.id, suite.name, kind(test), test.id, outcome(test.id, results), test.name, message
    ]
    console.log(fields.map(oneLine).join('\t'))
  }
}

for (const file of fs.readdirSync('results').filter(file => file.endsWith('.json')).sort()) {
  const theirs = read(path.join('results', file))
  const passed = new Map()
  for (const test of suites.flatMap(suite => suite.tests).filter(concernsProxies)) {
    const more = outcome(test.id, theirs) === 'pass' ? 1 : 0
    passed.set(kind(test), (passed.get(kind(test)) || 0) + more)
  }
  for (const [kind, count] of passed) {
    console.log(['peer', path.basename(file, '.json'), kind, count].join('\t'))
  }
}
