# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""What pyproject.toml cannot say: libsaina is compiled (make, gcc), and cffi's declarations are made of saina.h."""

import os
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

#: Beside what make builds, which has other names.
BASE = "build/pip"
LIBRARY = "libsaina.so.0"


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        package = os.path.join(self.build_lib, "saina")
        subprocess.run(["make", f"-j{os.cpu_count()}", f"B={BASE}/make", f"{BASE}/make/{LIBRARY}"], check=True)
        shutil.copy(f"{BASE}/make/{LIBRARY}", package)
        subprocess.run([sys.executable, "userland/python/cdef.py", "userland/lib/saina.h", os.path.join(package, "_libsaina.py")],
                       check=True)


class PlatformWheel(bdist_wheel):
    def get_tag(self):
        # Any Python 3, but one architecture: the library is loaded by cffi, and is no extension module.
        return ("py3", "none", super().get_tag()[2])


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


os.makedirs(BASE, exist_ok=True)
setup(cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel}, distclass=WithLibrary,
      options={"build": {"build_base": BASE}, "egg_info": {"egg_base": BASE}})
