// node wasm_python.mjs MODULE ROOT PROGRAM ARGUMENTS...: run a Python file of the repository on a Python that is WebAssembly.
const [module, root, program, ...args] = process.argv.slice(2);
const {loadPyodide} = await import(`file://${module}`);
const python = await loadPyodide({args: ["-B"], env: {HOME: "/home/pyodide", ...(process.env.CACHE ? {CACHE: process.env.CACHE} : {})}});
python.FS.mkdirTree("/tree");
python.FS.mount(python.FS.filesystems.NODEFS, {root}, "/tree");
python.globals.set("arguments_", python.toPy([`/tree/${program}`, ...args]));
process.exitCode = python.runPython(`
import runpy, sys, traceback
sys.argv = list(arguments_)
sys.path.insert(0, "/tree")
status = 0
try: runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as error: status = error.code or 0
except BaseException:
  traceback.print_exc()
  status = 1
int(status)
`);
