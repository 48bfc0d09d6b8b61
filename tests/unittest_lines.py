"""Runs unittest modules and prints a line a test, as tests/run wants it. usage: unittest_lines.py FILE...
A module that needs a package which is not installed is one skip."""
import importlib
import os
import sys
import unittest


class Lines(unittest.TestResult):
    def addSuccess(self, test):
        super().addSuccess(test)
        print("ok", test.id(), flush=True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"skip {test.id()}: {reason}", flush=True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.say(test, self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.say(test, self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.say(subtest, self._exc_info_to_string(err, test))

    @staticmethod
    def say(test, trace):
        lines = trace.strip().splitlines()
        print("\n".join(lines))
        print(f"not ok {test.id()}: {lines[-1]}", flush=True)


def load(path):
    name = os.path.basename(path).removesuffix(".py")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        return unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name))
    except ModuleNotFoundError as missing:
        print(f"skip {name}: no Python module {missing.name}")
        return unittest.TestSuite()


def main():
    suite = unittest.TestSuite(load(path) for path in sys.argv[1:])
    sys.exit(not suite.run(Lines()).wasSuccessful())


if __name__ == "__main__":
    main()
