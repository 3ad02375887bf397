"""The widely used python-alipay-sdk, unpatched, against a running sandbox. Only its gateway address is set.

Usage: python_alipay_sdk.py http://127.0.0.1:PORT

It shares its package name with Alipay's own SDK and lies in a folder to itself, `python-alipay-sdk/` inside the virtual environment.
"""

import pathlib
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(sys.prefix) / "python-alipay-sdk"))

from alipay import AliPay  # noqa: E402
from alipay.exceptions import AliPayValidationError  # noqa: E402

from sandbox_client import Checks, Sandbox, Shop  # noqa: E402

BASE = sys.argv[1]
SUBJECT = "双十一 手机壳📱+充电线 & 数据线=套装 50% off"


def main():
    checks, sandbox, shop = Checks(), Sandbox(BASE), Shop()
    shown = sandbox.account("alipay_2")
    alipay = AliPay(
        appid=shown["settings"]["app_id"],
        app_notify_url=shop.url,
        app_private_key_string=shown["keys"]["merchant_private_key"],
        alipay_public_key_string=shown["keys"]["channel_public_key"],
        sign_type="RSA2",
    )
    alipay._gateway = shown["settings"]["gateway_url"]
    order = "T" + uuid.uuid4().hex

    def precreate(amount):
        return alipay.api_alipay_trade_precreate(SUBJECT, order, amount)

    checks.equal("precreate", precreate("88.80")["code"], "10000")
    checks.equal("precreate again", precreate("88.80")["code"], "10000")
    checks.equal("precreate with another amount", precreate("1.00").get("sub_code"), "ACQ.CONTEXT_INCONSISTENT")
    sandbox.buyer("alipay", order, "pay")
    checks.equal("query", alipay.api_alipay_trade_query(out_trade_no=order)["trade_status"], "TRADE_SUCCESS")

    told = shop.next_form()
    signature = told.pop("sign")
    checks.that("the SDK verifies the notification", alipay.verify(dict(told), signature), told)
    checks.that("a changed notification does not verify", not alipay.verify({**told, "total_amount": "0.01"}, signature))
    checks.equal("the notification's subject", told["subject"], SUBJECT)

    refund = {"out_trade_no": order, "refund_amount": "8.80", "out_request_no": "p1"}
    checks.equal("refund", alipay.api_alipay_trade_refund(**refund)["fund_change"], "Y")
    checks.equal("refund again", alipay.api_alipay_trade_refund(**refund)["fund_change"], "N")
    seen = alipay.api_alipay_trade_fastpay_refund_query("p1", out_trade_no=order)
    checks.equal("refund query", seen["refund_amount"], "8.80")
    cancelled = alipay.api_alipay_trade_cancel(out_trade_no=order)
    checks.equal("cancel returns the rest", cancelled["action"], "refund")
    amounts = sorted(amount for executed, amount in sandbox.executed("alipay", order, "refund") for _ in range(executed))
    checks.equal("the ledger's refunds", amounts, [880, 8000])

    page_order = "T" + uuid.uuid4().hex
    query = alipay.api_alipay_trade_page_pay(SUBJECT, page_order, "12.30", return_url="http://127.0.0.1/back")
    status, text = sandbox.open(f"{shown['settings']['gateway_url']}?{query}")
    checks.that("the page opens", status == 200 and "12.30" in text, text)

    paid = alipay.api_alipay_trade_pay("T" + uuid.uuid4().hex, "bar_code", "28763443825664394", "可乐", total_amount="1.00")
    checks.equal("pay by code", paid["code"], "10000")
    created = alipay.api_alipay_trade_create(SUBJECT, "T" + uuid.uuid4().hex, "1.00", buyer_id="2088000000000001")
    checks.equal("create", created["code"], "10000")

    sandbox.fault("alipay", "query", "bad_signature")
    try:
        alipay.api_alipay_trade_query(out_trade_no=page_order)
    except AliPayValidationError:
        checks.that("a wrong signature does not verify", True)
    else:
        checks.that("a wrong signature does not verify", False)

    shop.close()
    checks.finish()


main()
