"""Alipay's own SDK (alipay-sdk-python), unpatched, against a running sandbox.

Usage: alipay_sdk.py http://127.0.0.1:PORT

The SDK always calls port 80 for http. So connections to that port of the sandbox's host are made to the sandbox's own port: that is the
gateway's address, and the only thing that is changed.
"""

import base64
import json
import logging
import socket
import sys
import uuid
from urllib.parse import urlsplit

from alipay.aop.api.AlipayClientConfig import AlipayClientConfig
from alipay.aop.api.DefaultAlipayClient import DefaultAlipayClient
from alipay.aop.api.domain.AlipayTradeCloseModel import AlipayTradeCloseModel
from alipay.aop.api.domain.AlipayTradeFastpayRefundQueryModel import AlipayTradeFastpayRefundQueryModel
from alipay.aop.api.domain.AlipayTradePagePayModel import AlipayTradePagePayModel
from alipay.aop.api.domain.AlipayTradePayModel import AlipayTradePayModel
from alipay.aop.api.domain.AlipayTradePrecreateModel import AlipayTradePrecreateModel
from alipay.aop.api.domain.AlipayTradeQueryModel import AlipayTradeQueryModel
from alipay.aop.api.domain.AlipayTradeRefundModel import AlipayTradeRefundModel
from alipay.aop.api.request.AlipayTradeCloseRequest import AlipayTradeCloseRequest
from alipay.aop.api.request.AlipayTradeFastpayRefundQueryRequest import AlipayTradeFastpayRefundQueryRequest
from alipay.aop.api.request.AlipayTradePagePayRequest import AlipayTradePagePayRequest
from alipay.aop.api.request.AlipayTradePayRequest import AlipayTradePayRequest
from alipay.aop.api.request.AlipayTradePrecreateRequest import AlipayTradePrecreateRequest
from alipay.aop.api.request.AlipayTradeQueryRequest import AlipayTradeQueryRequest
from alipay.aop.api.request.AlipayTradeRefundRequest import AlipayTradeRefundRequest
from alipay.aop.api.util.SignatureUtils import get_sign_content, verify_with_rsa
from cryptography.hazmat.primitives import serialization

from sandbox_client import Checks, Sandbox, Shop

logging.disable(logging.CRITICAL)

BASE = sys.argv[1]
SUBJECT = "双十一 手机壳📱+充电线 & 数据线=套装 50% off {\"a\": 1}"


def send_port_80_to_the_sandbox():
    """The SDK's gateway address has no port of its own."""
    at = urlsplit(BASE)
    connect = socket.create_connection

    def create_connection(address, *args, **kwargs):
        return connect((at.hostname, at.port) if address == (at.hostname, 80) else address, *args, **kwargs)

    socket.create_connection = create_connection


def pkcs1(pem):
    """The SDK wants the key in PKCS#1, without the marker lines."""
    key = serialization.load_pem_private_key(pem.encode(), None)
    der = key.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    return base64.b64encode(der).decode()


def bare(pem):
    return "".join(line for line in pem.splitlines() if not line.startswith("-----"))


class Merchant:
    """The SDK's client for the sandbox's first account."""

    def __init__(self, shown):
        settings = shown["settings"]
        config = AlipayClientConfig()
        config.server_url = f"http://{urlsplit(BASE).hostname}/alipay/gateway.do"
        config.app_id = settings["app_id"]
        config.app_private_key = pkcs1(shown["keys"]["merchant_private_key"])
        config.alipay_public_key = self.alipay_public_key = bare(shown["keys"]["channel_public_key"])
        self.client = DefaultAlipayClient(config)

    def call(self, request_type, model_type, notify_url=None, **fields):
        """One call; the SDK verifies the answer's signature, or raises."""
        return json.loads(self.client.execute(self.request(request_type, model_type, notify_url, **fields)))

    def request(self, request_type, model_type, notify_url=None, **fields):
        model = model_type()
        for name, value in fields.items():
            setattr(model, name, value)
        request = request_type(biz_model=model)
        if notify_url:
            request.notify_url = notify_url
        return request

    def precreate(self, **fields):
        return self.call(AlipayTradePrecreateRequest, AlipayTradePrecreateModel, **fields)

    def query(self, number):
        return self.call(AlipayTradeQueryRequest, AlipayTradeQueryModel, out_trade_no=number)

    def refund(self, number, request_number, amount):
        return self.call(
            AlipayTradeRefundRequest, AlipayTradeRefundModel, out_trade_no=number, out_request_no=request_number, refund_amount=amount
        )

    def refund_query(self, number, request_number):
        return self.call(
            AlipayTradeFastpayRefundQueryRequest,
            AlipayTradeFastpayRefundQueryModel,
            out_trade_no=number,
            out_request_no=request_number,
        )

    def close(self, number):
        return self.call(AlipayTradeCloseRequest, AlipayTradeCloseModel, out_trade_no=number)

    def believes(self, form):
        """What the SDK says of a notification's signature."""
        params = {name: value for name, value in form.items() if name not in ("sign", "sign_type")}
        try:
            return verify_with_rsa(self.alipay_public_key, get_sign_content(params).encode(), form["sign"])
        except Exception:
            return False


def number():
    return "T" + uuid.uuid4().hex


def main():
    send_port_80_to_the_sandbox()
    checks, sandbox, shop = Checks(), Sandbox(BASE), Shop()
    merchant = Merchant(sandbox.account("alipay"))

    # An order by QR code: again, and again with something else.
    order = number()
    fields = {"out_trade_no": order, "total_amount": "88.80", "subject": SUBJECT}
    first = merchant.precreate(notify_url=shop.url, **fields)
    checks.equal("precreate", first["code"], "10000")
    checks.that("precreate gives a code of the sandbox", first["qr_code"].startswith(f"{BASE}/alipay/qr/"), first)
    checks.equal("precreate again", merchant.precreate(notify_url=shop.url, **fields)["code"], "10000")
    changed = merchant.precreate(notify_url=shop.url, **{**fields, "total_amount": "88.81"})
    checks.equal("precreate with another amount", changed.get("sub_code"), "ACQ.CONTEXT_INCONSISTENT")
    checks.equal("no trade before the buyer scans", merchant.query(order).get("sub_code"), "ACQ.TRADE_NOT_EXIST")
    checks.equal("close before the buyer scans", merchant.close(order).get("sub_code"), "ACQ.TRADE_NOT_EXIST")

    # Paid, and told.
    sandbox.buyer("alipay", order, "pay")
    seen = merchant.query(order)
    checks.equal("query", (seen["trade_status"], seen["total_amount"]), ("TRADE_SUCCESS", "88.80"))
    told = shop.next_form()
    checks.that("the SDK verifies the notification", merchant.believes(told), told)
    checks.equal("the notification's subject", told["subject"], SUBJECT)
    checks.equal("the notification's status", told["trade_status"], "TRADE_SUCCESS")
    checks.that("a changed notification does not verify", not merchant.believes({**told, "total_amount": "0.01"}))
    checks.equal("precreate after payment", merchant.precreate(**fields).get("sub_code"), "ACQ.TRADE_HAS_SUCCESS")
    checks.equal("close after payment", merchant.close(order).get("sub_code"), "ACQ.TRADE_STATUS_ERROR")
    checks.equal("the ledger's charge", sandbox.executed("alipay", order, "charge"), [(1, 8880)])

    # Refunds.
    done = merchant.refund(order, "r1", "30.00")
    checks.equal("refund", (done["code"], done["fund_change"], done["refund_fee"]), ("10000", "Y", "30.00"))
    done = merchant.refund(order, "r1", "30.00")
    checks.equal("refund again", (done["code"], done["fund_change"], done["refund_fee"]), ("10000", "N", "30.00"))
    checks.equal("refund again, other amount", merchant.refund(order, "r1", "31.00").get("sub_code"), "ACQ.DISCORDANT_REPEAT_REQUEST")
    checks.equal("refund above the rest", merchant.refund(order, "r2", "58.81").get("sub_code"), "ACQ.REFUND_AMT_NOT_EQUAL_TOTAL")
    seen = merchant.refund_query(order, "r1")
    checks.equal("refund query", (seen["refund_status"], seen["refund_amount"]), ("REFUND_SUCCESS", "30.00"))
    checks.that("refund query of none", "refund_status" not in merchant.refund_query(order, "r2"))
    told = shop.next_form()
    checks.that("the SDK verifies the refund notification", merchant.believes(told), told)
    checks.equal("the refund notification", (told["out_biz_no"], told["refund_fee"]), ("r1", "30.00"))
    checks.equal("the ledger's refund", sandbox.executed("alipay", "r1", "refund"), [(1, 3000)])

    # Closed, and its number spent.
    order = number()
    fields["out_trade_no"] = order
    merchant.precreate(**fields)
    sandbox.buyer("alipay", order, "abandon")
    checks.equal("a scanned order waits", merchant.query(order)["trade_status"], "WAIT_BUYER_PAY")
    checks.equal("close", merchant.close(order)["code"], "10000")
    checks.equal("query after close", merchant.query(order)["trade_status"], "TRADE_CLOSED")
    checks.equal("precreate after close", merchant.precreate(**fields).get("sub_code"), "ACQ.TRADE_HAS_CLOSE")

    # A page: the SDK signs its address, the browser opens it.
    order = number()
    page = merchant.request(
        AlipayTradePagePayRequest,
        AlipayTradePagePayModel,
        notify_url=shop.url,
        out_trade_no=order,
        total_amount="12.30",
        subject=SUBJECT,
        product_code="FAST_INSTANT_TRADE_PAY",
    )
    url = merchant.client.page_execute(page, http_method="GET").replace(f"http://{urlsplit(BASE).hostname}/", BASE + "/")
    status, text = sandbox.open(url)
    checks.that("the page opens", status == 200 and "12.30" in text and "Pay</button>" in text, text)
    checks.equal("the opened page is a trade", merchant.query(order)["trade_status"], "WAIT_BUYER_PAY")
    sandbox.buyer("alipay", order, "pay")
    checks.that("the SDK verifies the page's notification", merchant.believes(shop.next_form()))

    # A payment code.
    order = number()
    paid = merchant.call(
        AlipayTradePayRequest,
        AlipayTradePayModel,
        out_trade_no=order,
        total_amount="1.00",
        subject="可乐",
        scene="bar_code",
        auth_code="28763443825664394",
    )
    checks.equal("pay by code", paid["code"], "10000")

    # Answers that are hard to verify, and one that must not.
    sandbox.fault("alipay", "query", "awkward")
    checks.equal("an awkward answer verifies", merchant.query(order)["trade_status"], "TRADE_SUCCESS")
    sandbox.fault("alipay", "query", "bad_signature")
    checks.raises("a wrong signature does not", lambda: merchant.query(order))

    shop.close()
    checks.finish()


main()
