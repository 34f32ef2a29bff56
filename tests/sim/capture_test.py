#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Has tshark dissect and scapy verify what the model captures: capture_test.py CAPTURE_WRITER.

Every frame must be RoCEv2 or PFC with the fields that were sent, with right IP checksums and ICRCs. A tool that is
missing fails the test.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapNgReader

DELAY_NS = 1000
RATE_GBPS = 100
RETH = {6, 10, 11, 12}
AETH = {13, 15, 16, 17, 18}
IMMEDIATE = {3, 5, 9, 11}
INVALIDATE = {22, 23}
ATOMIC = {19, 20}
FIELDS = [
    "frame.time_epoch", "frame.interface_name", "frame.packet_flags_direction", "frame.len", "frame.protocols",
    "ip.src", "ip.dst", "ip.dsfield.dscp", "ip.dsfield.ecn", "ip.checksum.status", "ip.len", "udp.srcport",
    "udp.dstport", "udp.length", "infiniband.bth.opcode", "infiniband.bth.se", "infiniband.bth.m",
    "infiniband.bth.padcnt", "infiniband.bth.tver", "infiniband.bth.p_key", "infiniband.bth.destqp",
    "infiniband.bth.a", "infiniband.bth.psn", "infiniband.reth.va", "infiniband.reth.r_key",
    "infiniband.reth.dmalen", "infiniband.atomiceth.swapdt", "infiniband.atomiceth.cmpdt",
    "infiniband.aeth.syndrome", "infiniband.aeth.msn", "infiniband.atomicacketh.origremdt", "infiniband.immdt",
    "infiniband.ieth", "infiniband.invariant.crc", "macc.opcode", "macc.cbfc.enbv", "macc.cbfc.pause_time.c3", "_ws.expert",
    "_ws.malformed",
]


def number(text):
    return int(text, 0) if text else None


def tshark(path):
    command = ["tshark", "-r", str(path), "-T", "fields", "-E", "separator=|", "-E", "occurrence=f",
               "-o", "ip.check_checksum:TRUE"]
    for field in FIELDS:
        command += ["-e", field]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [dict(zip(FIELDS, line.split("|"))) for line in output.splitlines()]


class CaptureTest(unittest.TestCase):
    writer = None

    @classmethod
    def setUpClass(cls):
        if shutil.which("tshark") is None:
            raise RuntimeError("tshark is missing: install it with scripts/setup test")
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name) / "capture.pcapng"
        output = subprocess.run([cls.writer, str(cls.path)], check=True, capture_output=True, text=True).stdout
        cls.sent = [json.loads(line) for line in output.splitlines()]
        cls.seen = tshark(cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def pairs(self):
        """What the host's port did, beside what the switch's port at the other end did.

        Each direction keeps its order; the two interleave differently at the two ends.
        """
        for at_host, at_switch in ((1, "0x00000001"), (0, "0x00000002")):
            here = [frame for frame in self.sent if frame["sent"] == at_host]
            there = [frame for frame in self.seen if frame["frame.packet_flags_direction"] == at_switch]
            self.assertEqual(len(here), len(there))
            yield from zip(here, there)

    def frames(self):
        reader = RawPcapNgReader(str(self.path))
        self.addCleanup(reader.close)
        return (data for data, _ in reader)

    def test_pairs__are_of_every_kind(self):
        self.assertEqual(len(self.sent), len(self.seen))
        kinds = {"pfc" if s["pfc"] else s["opcode"] for s in self.sent}
        self.assertEqual(kinds, set(range(21)) | {22, 23, 129, "pfc"})
        self.assertGreater(sum(s["pfc"] for s in self.sent), 1)
        self.assertGreater(sum(not s["sent"] for s in self.sent), 5)

    def test_tshark__dissects_every_frame_without_complaint(self):
        for seen in self.seen:
            layers = seen["frame.protocols"].split(":")
            self.assertIn("infiniband" if "udp" in layers else "macc", layers, seen)
            self.assertEqual(seen["_ws.malformed"], "", seen)
            self.assertEqual(seen["frame.interface_name"], "switch0:0")

    def test_tshark__sees_the_fields_of_the_ip_and_udp_headers(self):
        for sent, seen in self.pairs():
            if sent["pfc"]:
                continue
            self.assertEqual(seen["ip.src"], f"10.0.0.{sent['src'] + 1}")
            self.assertEqual(seen["ip.dst"], f"10.0.0.{sent['dst'] + 1}")
            self.assertEqual(number(seen["ip.dsfield.dscp"]), sent["dscp"])
            self.assertEqual(number(seen["ip.dsfield.ecn"]), sent["ecn"])
            self.assertEqual(seen["ip.checksum.status"], "1")
            self.assertEqual(number(seen["udp.srcport"]), sent["sport"])
            self.assertEqual(number(seen["udp.dstport"]), 4791)
            self.assertEqual(number(seen["udp.length"]), number(seen["ip.len"]) - 20)
            self.assertEqual(number(seen["frame.len"]) + 24, max(84, sent["wire"]))

    def test_tshark__sees_the_fields_of_the_transport_headers(self):
        for sent, seen in self.pairs():
            if sent["pfc"]:
                continue
            op = sent["opcode"]
            self.assertEqual(number(seen["infiniband.bth.opcode"]), op)
            self.assertEqual(seen["infiniband.bth.se"] in ("1", "True"), bool(sent["se"]))
            self.assertIn(seen["infiniband.bth.m"], ("1", "True"))
            self.assertEqual(number(seen["infiniband.bth.padcnt"]), -sent["payload"] % 4)
            self.assertEqual(number(seen["infiniband.bth.tver"]), 0)
            self.assertEqual(number(seen["infiniband.bth.p_key"]), 0xffff)
            self.assertEqual(number(seen["infiniband.bth.destqp"]), sent["qp"])
            self.assertEqual(seen["infiniband.bth.a"] in ("1", "True"), bool(sent["a"]))
            self.assertEqual(number(seen["infiniband.bth.psn"]), sent["psn"] & 0xffffff)
            reth = op in RETH
            self.assertEqual(number(seen["infiniband.reth.dmalen"]), sent["length"] if reth else None)
            self.assertEqual(number(seen["infiniband.reth.va"]), sent["va"] if reth or op in ATOMIC else None)
            self.assertEqual(number(seen["infiniband.reth.r_key"]), sent["rkey"] if reth or op in ATOMIC else None)
            self.assertEqual(number(seen["infiniband.atomiceth.swapdt"]), sent["swap"] if op in ATOMIC else None)
            self.assertEqual(number(seen["infiniband.atomiceth.cmpdt"]), sent["compare"] if op in ATOMIC else None)
            self.assertEqual(number(seen["infiniband.aeth.syndrome"]), sent["syndrome"] if op in AETH else None)
            self.assertEqual(number(seen["infiniband.aeth.msn"]), sent["msn"] if op in AETH else None)
            self.assertEqual(number(seen["infiniband.atomicacketh.origremdt"]),
                             sent["original"] if op == 18 else None)
            if op in INVALIDATE:
                self.assertEqual(int(seen["infiniband.ieth"].replace(":", "").removeprefix("0x"), 16), sent["rkey"])
            if op in IMMEDIATE:
                self.assertEqual(int(seen["infiniband.immdt"].replace(":", "").removeprefix("0x"), 16), sent["imm"])

    def test_tshark__sees_pauses(self):
        quanta = set()
        for sent, seen in self.pairs():
            if not sent["pfc"]:
                continue
            self.assertEqual(number(seen["macc.opcode"]), 0x0101)
            self.assertEqual(number(seen["macc.cbfc.enbv"]), sent["pfc_enable"])
            self.assertEqual(number(seen["macc.cbfc.pause_time.c3"]), sent["quanta3"])
            quanta.add(sent["quanta3"])
        self.assertEqual(quanta, {0, 65535})  # XON and XOFF

    # What one end sends with its first bit, the other has whole after serialisation and delay.
    def test_times__differ_between_the_ends_by_serialisation_and_delay(self):
        for sent, seen in self.pairs():
            seconds, fraction = seen["frame.time_epoch"].split(".")
            at_switch = int(seconds) * 10**12 + int(fraction.ljust(12, "0"))
            wire = sent["wire"]
            flight = wire * 8000 // RATE_GBPS + DELAY_NS * 1000
            expected = sent["time_ps"] + flight if sent["sent"] else sent["time_ps"] - flight
            self.assertLess(abs(at_switch - expected), 1001)  # tshark shows whole nanoseconds

    def test_scapy__verifies_every_icrc(self):
        checked = 0
        for data in self.frames():
            packet = Ether(data)
            if BTH not in packet:
                continue
            length = packet[IP].len
            wire = data[14 + length - 4:14 + length]
            self.assertEqual(packet[BTH].compute_icrc(b""), wire, packet.summary())
            checked += 1
        self.assertEqual(checked, sum(not s["pfc"] for s in self.sent))

    # The check above must be able to fail.
    def test_scapy__finds_a_wrong_icrc(self):
        data = bytearray(next(self.frames()))
        length = Ether(bytes(data))[IP].len
        data[14 + length - 5] ^= 1
        packet = Ether(bytes(data))
        self.assertNotEqual(packet[BTH].compute_icrc(b""), bytes(data[14 + length - 4:14 + length]))


if __name__ == "__main__":
    CaptureTest.writer = sys.argv.pop(1)
    unittest.main()
